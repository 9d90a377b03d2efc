// Slots transcodes films on devices that any machine can reach, each device one
// film at a time. Any number of copies run; as many of them work as there are
// devices. The slot of the lock names the device.
//
// All copies must set the same number of slots. Each device checks tokens by
// itself: the holder of one slot may have a lower token than that of another.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	_ "github.com/redlatch/redlatch/store/sqlite" // for the file
)

var (
	list = flag.String("devices", "", "the URLs of the devices, with commas; the same list, in the same order, on every machine")
	ttl  = flag.Duration("ttl", 5*time.Second, "another copy takes the device of a dead one after this time")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *list == "" || flag.NArg() == 0 {
		log.Fatal("give the devices and the films, such as: slots -devices http://10.0.0.5,http://10.0.0.6 one.mov two.mov")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Split(*list, ","), flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, devices, films []string) error {
	// The servers of REDLATCH_NODES, or else a file of this machine.
	locks, err := redlatch.Open(cmp.Or(os.Getenv("REDLATCH_NODES"), "sqlite:"), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	// All copies set the same number of slots: that of the devices.
	opts := redlatch.LockOptions{TTL: *ttl, Slots: len(devices)}
	for _, film := range films {
		for done := false; !done; {
			err := locks.Do(ctx, "transcoders", &opts, func(ctx context.Context, lease *redlatch.Lease) error {
				return transcode(ctx, devices[lease.Slot()], film, lease.Token())
			})
			switch {
			case err == nil:
				done = true
			case errors.Is(err, redlatch.ErrLost), errors.Is(err, fence.ErrStale):
				log.Println(film, "again:", err) // another has the device
			default:
				return err
			}
		}
	}
	return nil
}

// transcode transcodes a film on a device. The device ends the work when the
// request ends, and so when the lock is lost. It refuses a token that is lower
// than the last one it has seen: that of a copy which was paused, and whose slot
// another copy has by now.
func transcode(ctx context.Context, device, film string, token redlatch.Token) error {
	fmt.Println(film, "on", device)
	body := strings.NewReader(url.Values{"film": {film}}.Encode())
	req, err := http.NewRequestWithContext(fence.WithToken(ctx, token), http.MethodPost, device, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{Transport: &fence.Transport{}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := fence.ResponseError(resp); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", device, resp.Status)
	}
	fmt.Println(film, "is done")
	return nil
}
