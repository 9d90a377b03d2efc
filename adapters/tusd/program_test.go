//go:build unix

package redlatchtusd_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlatch/redlatch"
	redlatchtusd "github.com/redlatch/redlatch/adapters/tusd"
	"github.com/redlatch/redlatch/internal/test/processes"
)

// TestMain turns the test binary into the server below when a test starts it.
func TestMain(m *testing.M) { processes.Main(m, program) }

var (
	nodes = flag.String("nodes", "", "addresses of the nodes; empty for no locks at all")
	dir   = flag.String("dir", "", "where uploads are stored")
	ttl   = flag.Duration("ttl", 2*time.Second, "how long a lock outlives a server that died")
)

// program is a tusd server.
func program() {
	log.SetFlags(0)
	flag.Parse()
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	composer := handler.NewStoreComposer()
	composer.UseCore(store{filestore.New(*dir)})
	if *nodes != "" {
		// snippet: locker
		locks, err := redlatch.Open(*nodes, nil)
		if err != nil {
			return err
		}
		locker, err := redlatchtusd.New(locks, &redlatchtusd.Options{TTL: *ttl})
		if err != nil {
			return err
		}
		locker.UseIn(composer)
		// end snippet
	}
	uploads, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("serving http://%s/files/\n", l.Addr())
	return http.Serve(l, http.StripPrefix("/files/", uploads))
}

// store is a store of files that fails if two write to one upload at the same
// time.
type store struct{ filestore.FileStore }

func (s store) NewUpload(ctx context.Context, info handler.FileInfo) (handler.Upload, error) {
	return s.guard(s.FileStore.NewUpload(ctx, info))
}

func (s store) GetUpload(ctx context.Context, id string) (handler.Upload, error) {
	return s.guard(s.FileStore.GetUpload(ctx, id))
}

func (s store) guard(u handler.Upload, err error) (handler.Upload, error) {
	if err != nil {
		return nil, err
	}
	return upload{u, s.Path}, nil
}

// upload is an upload of a store.
type upload struct {
	handler.Upload
	dir string
}

func (u upload) WriteChunk(ctx context.Context, offset int64, src io.Reader) (int64, error) {
	info, err := u.GetInfo(ctx)
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(filepath.Join(u.dir, info.ID+".writer"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// The system frees this lock when the process ends, however it ends.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Println("two write at the same time")
		return 0, errors.New("two write at the same time")
	}
	fmt.Println("writing", info.ID)
	return u.Upload.WriteChunk(ctx, offset, src)
}
