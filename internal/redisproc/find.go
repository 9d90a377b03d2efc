package redisproc

import (
	"errors"
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
