// Package world is clients, servers and a resource that can be stepped: the
// real protocol.Claim on the real nodestate.Server, in virtual time, without
// goroutines, a clock or the network. The playground (docs/playground) shows it
// in a browser, and the tests of this package run the same stories.
//
// A World is a queue of events: a message arrives, a timer fires, a caller
// acts. Step runs the next one, RunUntil those within a time. What goes
// wrong is a method: Client.Pause, Client.Cut, Server.RestartEmpty, Server.Skew.
// After every event the world looks for what must not be: two valid leases at
// once, a token that does not grow, a valid holder that the resource refuses.
//
// It does what package runner does around a claim (sending, timers, health,
// clocks, marking, clean-up), in the simplest form. It is not a test of the
// runner: package sim is.
package world
