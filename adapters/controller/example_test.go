//go:build unix

package redlatchcontroller_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redlatch/redlatch"
	redlatchcontroller "github.com/redlatch/redlatch/adapters/controller"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// An operator of which one replica reconciles.
func ExampleNew() {
	a, b, c, end := servertest.Example()
	defer end()

	// These servers are brand-new. Those in production are marked once, by
	// redlatch init.
	locks, err := redlatch.Open(a+","+b+","+c, &redlatch.Options{AssumeFresh: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	t := &servertest.Outside{}
	defer t.End()
	config, opts := kubernetes(t), options()
	ctx, stop := context.WithCancel(context.Background())
	// snippet: manager
	mgr, err := redlatchcontroller.New(config, opts, locks, "shop-operator", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			fmt.Println("reconciling", r, "with a token:", mgr.Lease().Token() > 0)
			stop() // once is enough for this example
			return reconcile.Result{}, nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	err = mgr.Start(ctx)
	// end snippet
	fmt.Println("stopped, error:", err)
	// Output:
	// reconciling default/shop with a token: true
	// stopped, error: <nil>
}
