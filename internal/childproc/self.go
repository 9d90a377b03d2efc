package childproc

import (
	"os"
	"runtime"
)

// Self returns the path of this program, to start it again. On Linux the path
// stays valid even after the file was replaced by a newer version.
func Self() string {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe"
		}
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
