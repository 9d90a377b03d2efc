package snippets

import (
	"reflect"
	"testing"
)

func TestCommandsAreTakenApartAsTheShellWould(t *testing.T) {
	for script, want := range map[string][][]string{
		"redlatch run -n a -- ./b 'c d'":         {{"redlatch", "run", "-n", "a", "--", "./b", "c d"}},
		"redlatch run \\\n  a -- b # the rest":   {{"redlatch", "run", "a", "--", "b"}},
		"lease=$(redlatch lock -w 1m a) || exit": {{"redlatch", "lock", "-w", "1m", "a"}, {"lease=$()"}, {"exit"}},
		"echo \"$(redlatch ls)\"; redlatch show": {{"redlatch", "ls"}, {"echo", "$()"}, {"redlatch", "show"}},
		"echo \"$(a \"b)\" c)\" d":               {{"a", "b)", "c"}, {"echo", "$()", "d"}},
		"printf %s \"$h\" | redlatch unlock -":   {{"printf", "%s", "$h"}, {"redlatch", "unlock", "-"}},
		"sh -c 'redlatch ls; redlatch doctor' x": {{"sh", "-c", "redlatch ls; redlatch doctor", "x"}, {"redlatch", "ls"}, {"redlatch", "doctor"}},
		"a#b && (c) & d":                         {{"a#b"}, {"c"}, {"d"}},
		"echo \"redlatch runs\"":                 {{"echo", "redlatch runs"}},
	} {
		if got := Commands(script); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %q\nwant %q", script, got, want)
		}
	}
}
