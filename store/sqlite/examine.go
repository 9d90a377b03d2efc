package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/redlatch/redlatch/node/risk"
)

var _ risk.Examiner = (*Node)(nil)

// Examine checks where the file is, who may write to it and which clock it
// uses, and tries the operations of a lock.
func (n *Node) Examine(ctx context.Context, exam risk.Exam) ([]risk.Finding, error) {
	found := n.rows.Rights(ctx, exam, "see that this user may write to the file and to its folder")
	add := found.Add
	name, kind := fileSystem(n.store.path)
	switch kind {
	case networkFS:
		add(risk.Danger, "filesystem", "the file is on a network file system ("+name+")",
			"it does not keep the locks and the shared memory that SQLite needs: two may hold one lock", "choose a path on a local disk, or use servers: --nodes")
	case foreignFS:
		add(risk.Warning, "filesystem", "the file is on "+name+", which may be a network or a host's behind it",
			"if it is, two may hold one lock", "choose a path on a local disk")
	case layerFS:
		add(risk.Advice, "filesystem", "the file is in a container's own layer ("+name+")",
			"it excludes the processes of this container alone", "put it on a volume that all share, on a disk of this machine, or use servers: --nodes")
	case memoryFS:
		add(risk.Fine, "filesystem", "the file is in memory ("+name+"), and gone after a reboot", "holders are gone too; tokens continue from the wall clock", "")
	case localFS:
		add(risk.Fine, "filesystem", "the file is on a local file system ("+name+")", "", "")
	default:
		add(risk.Advice, "filesystem", "what file system the file is on is not known", "on a network file system two may hold one lock", "see that it is a disk of this machine")
	}
	n.examineModes(add)
	if n.store.time.boot == "" {
		add(risk.Warning, "clock", "expiry goes by the wall clock", "setting it forward ends locks early, setting it back keeps them", "keep the clock with a time service, slewing and not stepping")
	} else {
		add(risk.Fine, "clock", "expiry goes by a clock that nobody can set", "", "")
	}
	return found.All, nil
}

// examineModes checks who else may write to the file, or replace it.
func (n *Node) examineModes(add func(s risk.Severity, check, what, means, do string)) {
	if runtime.GOOS == "windows" {
		return // modes mean nothing here
	}
	file, err1 := os.Stat(n.store.path)
	folder, err2 := os.Stat(filepath.Dir(n.store.path))
	if err1 != nil || err2 != nil {
		return
	}
	const others, group = 0o002, 0o020
	switch mode, dir := file.Mode(), folder.Mode(); {
	case dir&others != 0 && dir&os.ModeSticky == 0:
		add(risk.Danger, "permissions", fmt.Sprintf("everyone may replace the file (folder mode %04o)", dir.Perm()), "that removes all locks", "chmod o-w "+filepath.Dir(n.store.path))
	case mode&others != 0:
		add(risk.Warning, "permissions", fmt.Sprintf("everyone may write to the file (mode %04o)", mode.Perm()), "every user of this machine can take and free every lock", "chmod o-w "+n.store.path)
	case mode&group != 0:
		add(risk.Advice, "permissions", fmt.Sprintf("a group may write to the file (mode %04o)", mode.Perm()), "its members can take and free every lock, which may be what it is for", "")
	default:
		add(risk.Fine, "permissions", "only its owner may write to the file", "", "")
	}
}

// fsKind is what a file system means for locks.
type fsKind int

const (
	unknownFS fsKind = iota
	localFS
	memoryFS
	layerFS
	foreignFS // the files may be anywhere
	networkFS
)
