// Package ui is a page that shows the locks of a client's nodes: who holds each,
// since when and until when, who waits, how the nodes are, and recent
// events. It follows what happens without a reload. It changes nothing: to break
// a lock it shows the command that does so.
//
// The command "redlatch ui" serves it. To have it in a server of your own, mount
// it:
//
//	page, err := ui.New(client, nil)
//	...
//	defer page.Close()
//	mux.Handle("/locks/", http.StripPrefix("/locks", page))
//
// # Security
//
// The package does not authenticate: that is the job of the server that mounts
// it. Put it behind what protects your other internal pages, since the page
// shows the names of locks, hosts and processes to everybody who can reach it.
//
// It does what a page can do for itself. It serves GET and HEAD only, cannot be
// framed, runs no script but its own, loads nothing from elsewhere, is not
// cached, and refuses requests that pages of other sites send. Names and owners
// may contain anything; they are shown as text, and characters that cannot be
// seen are shown by their code. Set Options.Hosts on a server that trusts its
// network, such as one on loopback: otherwise a page elsewhere can reach it
// through a host name that it controls.
//
// # Cost
//
// All viewers share one survey of the nodes, about one in a second, and none is
// made while nobody watches. A survey takes time in proportion to the number of
// locks; if it takes long, surveys become rarer, so that the nodes work for the
// page a quarter of the time at most.
package ui
