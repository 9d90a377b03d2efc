package world

import "testing"

// TestEveryStoryEndsAsItSays runs the stories of the playground. Each step checks
// what the page says about it. With -v it prints them.
func TestEveryStoryEndsAsItSays(t *testing.T) {
	for _, s := range Stories {
		t.Run(s.Name, func(t *testing.T) {
			tell, world, shown := Tell(s), (*World)(nil), 0
			for _, step := range s.Steps {
				t.Log(step.Say)
				tell.Next()
				tell.Finish()
				if tell.World != world {
					world, shown = tell.World, 0
				}
				for _, l := range world.Lines()[shown:] {
					t.Logf("%9.3f s  %s", l.At.Seconds(), l.Text)
				}
				shown = len(world.Lines())
				if tell.Err != nil {
					t.Fatal(tell.Err)
				}
				t.Log("✓ " + step.Then)
			}
			if tell.At != len(s.Steps) || tell.Running {
				t.Errorf("the story stopped at step %d of %d", tell.At, len(s.Steps))
			}
		})
	}
}
