package protocol

import "testing"

func TestAbsentTimeNeverComes(t *testing.T) {
	var absent When
	same := At(3)
	for name, c := range map[string]struct{ got, want bool }{
		"absent, reached":            {absent.Reached(1 << 60), false},
		"zero, reached":              {At(0).Reached(0), true},
		"later, reached":             {At(2).Reached(1), false},
		"absent before a time":       {absent.Before(At(1)), false},
		"a time before absent":       {At(1).Before(absent), true},
		"absent before absent":       {absent.Before(absent), false},
		"earlier before later":       {At(1).Before(At(2)), true},
		"a time before the same":     {At(1).Before(At(1)), false},
		"zero is a time":             {At(0).IsSet(), true},
		"absent is the zero value":   {absent == (When{}), true},
		"absent takes the default":   {absent.Or(7) == 7, true},
		"a time takes no default":    {At(0).Or(7) == 0, true},
		"two equal times are equal":  {At(3) == same, true},
		"zero and absent are not so": {At(0) == absent, false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}
