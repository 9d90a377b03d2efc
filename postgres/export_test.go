package postgres

// RegisterTypes is what New does with each of its connections.
var RegisterTypes = registerTypes
