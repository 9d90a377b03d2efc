// Package nodetest is the conformance suite for nodes: what the comments of
// redlatch.Node say, as tests. Every kind of node in this module passes it,
// and a new kind starts with it.
//
// # Basics
//
// A test of the new node tells Run how to open it:
//
//	func TestConformance(t *testing.T) {
//		nodetest.Run(t, nodetest.Harness{
//			Open: func(t testing.TB) (a, b redlatch.Node) {
//				dsn := startServer(t)
//				return connect(t, dsn), connect(t, dsn)
//			},
//			Queues: true,
//		})
//	}
//
// Each claim is a subtest whose name states it, so that a failure reads as
// what does not hold.
//
// # Caveats
//
// The suite sees what two clients of a healthy store can see. It does not
// pull plugs: whether a store keeps its word through a crash, a restart or a
// partition is for the node's own tests to say.
package nodetest
