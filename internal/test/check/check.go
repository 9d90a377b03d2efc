// Package check ends tests at errors.
package check

// Must ends the test if there is an error. A test is a *testing.T, or one of
// another package that is like it.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
