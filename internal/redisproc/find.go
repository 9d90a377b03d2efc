package redisproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Install says how to install a server.
const Install = "install one with apt-get install redis-server, dnf install valkey, apk add redis or brew install redis"

// Find returns the path of the server that is installed.
func Find() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is neither redis-server nor valkey-server on this machine")
}

// Variable is an environment variable with the path of the server that tests run
// on, in place of the redis-server that is installed.
const Variable = "REDLATCH_REDIS_SERVER"

// ForTests returns the path of the server that tests run on.
func ForTests() (string, error) {
	if name := os.Getenv(Variable); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			err = fmt.Errorf("%s is %q, and must be a program: %w", Variable, name, err)
		}
		return path, err
	}
	return exec.LookPath("redis-server")
}
