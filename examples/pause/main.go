//go:build unix

// Pause shows what a fencing token is for. A process takes a lock and is
// stopped for longer than its lease; another takes the lock and writes; the
// first one continues where it was, and writes. With the fence its write is
// refused; with -fence=false it overwrites the other's.
//
// It needs a Redis server for the lock. The row is in an SQLite file.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

var (
	server = flag.String("redis", "redis://127.0.0.1:6379", "where the lock is")
	fenced = flag.Bool("fence", true, "have the database check tokens")
	holder = flag.String("holder", "", "be the holder of this name (for the program's own use)")
	file   = flag.String("file", "", "the database (for the program's own use)")
)

const ttl = time.Second

func main() {
	log.SetFlags(0)
	flag.Parse()
	run := story
	if *holder != "" {
		run = hold
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// story starts the two holders, and stops one of them.
func story() error {
	dir, err := os.MkdirTemp("", "pause")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	*file = filepath.Join(dir, "db")
	db, guard, err := open()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := guard.Create(context.Background()); err != nil {
		return err
	}
	if _, err := db.Exec("CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT); INSERT INTO account VALUES (1, 'nobody')"); err != nil {
		return err
	}

	a, err := start("A")
	if err != nil {
		return err
	}
	defer a.end()
	fmt.Println("A is stopped, for longer than its lease of", ttl)
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	b, err := start("B")
	if err != nil {
		return err
	}
	defer b.end()
	if err := b.write(); err != nil {
		return err
	}
	fmt.Println("A goes on, and does not know that time has passed")
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := a.write(); err != nil {
		return err
	}
	var owner string
	if err := db.QueryRow("SELECT owner FROM account WHERE id = 1").Scan(&owner); err != nil {
		return err
	}
	fmt.Println("the row is", owner+"'s")
	return nil
}

// process is a holder that was started.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// start returns when the holder has the lock.
func start(name string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, "-holder", name, "-file", *file, "-redis", *server, fmt.Sprintf("-fence=%t", *fenced))}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.tell()
}

// write has the holder write.
func (p *process) write() error {
	if _, err := fmt.Fprintln(p.in); err != nil {
		return err
	}
	return p.tell()
}

// tell prints the next thing that the holder says.
func (p *process) tell() error {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return errors.New("a holder ended too early")
	}
	fmt.Print(line)
	return nil
}

func (p *process) end() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// hold is one of the holders: it takes the lock, and writes on command,
// trusting the lock as most programs do.
func hold() error {
	ctx := context.Background()
	locks, err := redlatch.Open(*server, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	lease, err := locks.Lock(ctx, "account/1", &redlatch.LockOptions{TTL: ttl})
	if err != nil {
		return err
	}
	db, guard, err := open()
	if err != nil {
		return err
	}
	defer db.Close()
	fmt.Printf("%s has the lock, token %d\n", *holder, lease.Token())

	for in := bufio.NewReader(os.Stdin); ; {
		if _, err := in.ReadString('\n'); err != nil {
			return nil // the story is over
		}
		const update = "UPDATE account SET owner = ? WHERE id = 1"
		if *fenced {
			err = guard.Do(ctx, "account/1", lease.Token(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, update, *holder)
				return err
			})
		} else {
			_, err = db.ExecContext(ctx, update, *holder)
		}
		if err != nil {
			fmt.Println(*holder, "is refused:", strings.TrimPrefix(err.Error(), "redlatch: "))
		} else {
			fmt.Println(*holder, "has written")
		}
	}
}

func open() (*sql.DB, *fence.SQL, error) {
	db, err := sql.Open("sqlite", "file:"+*file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, nil, err
	}
	guard, err := fence.NewSQL(db, fence.SQLite, nil)
	return db, guard, err
}
