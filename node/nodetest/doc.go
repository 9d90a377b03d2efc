// Package nodetest is the conformance suite for nodes: it tests what the
// comments of node.Node promise. Every kind of node in this module passes
// it. Start a new kind with it.
//
// # Basics
//
// A test of the new node passes Run a function that opens it:
//
//	func TestConformance(t *testing.T) {
//		nodetest.Run(t, nodetest.Harness{
//			Open: func(t testing.TB) (a, b redlatch.Node) {
//				dsn := startServer(t)
//				return connect(t, dsn), connect(t, dsn)
//			},
//		})
//	}
//
// Each claim is a subtest. Its name states the claim, so that a failure reads
// as what does not hold.
//
// # Caveats
//
// The suite sees what two clients of a healthy store can see. It causes no
// failures: the node's own tests have to show that the store keeps its promises
// through a crash, a restart or a partition.
package nodetest
