package demo

import "errors"

// canPause says whether this system can stop a process.
const canPause = false

func (*process) pause() error { return errors.ErrUnsupported }

func (*process) resume() error { return errors.ErrUnsupported }
