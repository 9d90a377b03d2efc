package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/ui"
)

// uiFlags are the flags of ui.
type uiFlags struct {
	nodeFlags
	listen       string
	pagePassword string
	cert, key    string
	behindProxy  bool
	hosts        []string
	interval     time.Duration
}

func newUI(say *reporter) *cobra.Command {
	f := &uiFlags{}
	cmd := &cobra.Command{
		Use:   "ui [flags]",
		Short: "Serve a page that shows the locks, the queues and the nodes, live",
		Long: `Serve a page for a browser with the locks, their holders and waiters, the nodes, and
recent events, until a signal comes. It changes nothing: to break a lock it shows
the command.

It listens on loopback. Any other address needs a password, --page-password-file,
and TLS: --tls-cert and --tls-key, or --behind-proxy if a proxy does TLS.`,
		Example: `  redlatch ui --nodes redis://a:6379,redis://b:6379,redis://c:6379`,
		Args:    noArgs("give the address in --listen, and the nodes in --nodes"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.about("", f.run(cmd, say)) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8089", "the `HOST:PORT` to listen on; port 0 is a free one")
	flags.StringVar(&f.pagePassword, "page-password-file", "", "a `file` whose first line is the password of the page, of 12 characters or more")
	flags.StringVar(&f.cert, "tls-cert", "", "the `file` of the certificate, for TLS")
	flags.StringVar(&f.key, "tls-key", "", "the `file` of its key")
	flags.BoolVar(&f.behindProxy, "behind-proxy", false, "a proxy does TLS: without it, passwords and locks can be read on the network")
	flags.StringArrayVar(&f.hosts, "host", nil, "a host `NAME` under which the page is served, besides those of loopback; may be repeated")
	flag.Duration(flags, &f.interval, "interval", "", time.Second, "the `INTERVAL` between two surveys of the nodes")
	f.nodeFlags.register(flags, say)
	say.registerJSON(flags, "write JSON to stdout instead of text")
	return cmd
}

func (f *uiFlags) run(cmd *cobra.Command, say *reporter) error {
	addr, err := f.address()
	if err != nil {
		return err
	}
	protect, secure, err := f.protection(addr)
	if err != nil {
		return err
	}
	client, err := f.client(redlatch.Options{NodeTimeout: time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	page, err := ui.New(client, &ui.Options{Interval: f.interval, Hosts: f.served(addr), BreakFlags: f.shownFlags()})
	if err != nil {
		return err
	}
	defer page.Close()
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return &outcome{code: exitNoQuorum, event: "no_listen", err: err, hint: "give another address or port in --listen"}
	}
	defer listener.Close()
	url := "http://" + listener.Addr().String() + "/"
	if secure != nil {
		url = strings.Replace(url, "http", "https", 1)
	}
	at := fields{}.add("event", "listening").add("url", url)
	if err := say.print(cmd.OutOrStdout(), at, fmt.Sprintf("the page is at %s, until Ctrl-C\n", url)); err != nil {
		return err
	}
	return serve(listener, secure, protect(page), page, say)
}

// address returns the address to listen on.
func (f *uiFlags) address() (*net.TCPAddr, error) {
	const bound = "HOST:PORT, such as 127.0.0.1:8089 or [::1]:8089"
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return nil, &redlatch.ConfigError{Field: "--listen", Value: f.listen, Bound: bound}
	}
	addr, err := net.ResolveTCPAddr("tcp", f.listen)
	if err != nil {
		return nil, usageError(fmt.Errorf("--listen is %q: %w", f.listen, err), "give "+bound)
	}
	return addr, nil
}

// served returns the host names that the page is served under; none for all.
func (f *uiFlags) served(addr *net.TCPAddr) []string {
	var hosts []string
	for _, h := range f.hosts {
		hosts = append(hosts, strings.ToLower(h))
	}
	if addr.IP.IsLoopback() {
		hosts = append(hosts, "localhost", "127.0.0.1", "::1", addr.IP.String())
	}
	return hosts
}

// shownFlags returns the flags of the command that breaks a lock: those that
// name the nodes on our own command line, without passwords.
func (f *uiFlags) shownFlags() []string {
	var shown []string
	if f.given("nodes") {
		addresses := split(f.nodes...)
		for i, a := range addresses {
			if hasPassword(a) && i < len(f.opened) {
				addresses[i] = f.opened[i]
			}
		}
		shown = append(shown, "--nodes", strings.Join(addresses, ","))
	}
	for _, name := range []string{"membership", "guard"} {
		if f.given(name) {
			shown = append(shown, "--"+name, f.flags.Lookup(name).Value.String())
		}
	}
	if f.any {
		shown = append(shown, "--any-membership")
	}
	return shown
}

// serve serves the page until a signal comes.
func serve(listener net.Listener, secure *tls.Config, handler http.Handler, page *ui.UI, say *reporter) error {
	server := &http.Server{
		Handler: handler, TLSConfig: secure, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(complaints{say}, "", 0),
	}
	ctx, stop := untilSignal()
	defer stop()
	failed := make(chan error, 1)
	go func() {
		if secure != nil {
			failed <- server.ServeTLS(listener, "", "")
		} else {
			failed <- server.Serve(listener)
		}
	}()
	select {
	case err := <-failed:
		return &outcome{code: exitNoQuorum, event: "no_listen", err: fmt.Errorf("the page can no longer be served: %w", err)}
	case <-ctx.Done():
	}
	page.Close() // disconnects the viewers
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if server.Shutdown(patience) != nil {
		server.Close()
	}
	return nil
}

// complaints reports what the server logs: handshakes that failed, and the
// like.
type complaints struct{ say *reporter }

func (c complaints) Write(line []byte) (int, error) {
	c.say.warn("", "%s", strings.TrimSpace(string(line)))
	return len(line), nil
}
