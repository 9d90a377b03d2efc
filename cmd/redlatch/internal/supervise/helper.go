package supervise

// GuardianVerb is the first argument of a guardian, as ps shows it.
const GuardianVerb = "__guardian"

// Helper runs a process that Run has started from this program: a guardian, or
// one that becomes CMD. It returns false if the arguments are none of those. The
// main function calls it before it parses arguments.
func Helper(args []string) (code int, is bool) {
	switch {
	case isGuardian(args):
		return runGuardian(args), true
	case isGate(args):
		return runGate(args), true
	}
	return 0, false
}
