package demo

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/fence"
)

// account is the resource that the lock protects: a balance that is read with
// GET and written with PUT. It does not know the lock.
type account struct {
	url    string
	server *http.Server

	mu      sync.Mutex // guards what follows
	balance int
}

// openAccount serves an account. With a fence, tokens are checked before it: that
// is all that a resource has to do.
func openAccount(fenced bool, observe func(http.Handler) http.Handler) (*account, error) {
	a := &account{}
	var handler http.Handler = a
	if fenced {
		gate, err := fence.NewGate(nil)
		if err != nil {
			return nil, err
		}
		check, err := fence.Middleware(gate, &fence.MiddlewareOptions{Serial: true})
		if err != nil {
			return nil, err
		}
		handler = check(a)
	}
	if observe != nil {
		handler = observe(handler)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a.url = "http://" + l.Addr().String() + "/balance"
	a.server = &http.Server{Handler: handler}
	go a.server.Serve(l)
	return a, nil
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		fmt.Fprint(w, a.read())
		return
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = a.write(string(text))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (a *account) read() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.balance
}

func (a *account) write(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance = n
	return nil
}

// remoteAccount is the account as a holder of its lock sees it.
type remoteAccount struct {
	url    string
	client http.Client
}

func (a *remoteAccount) read() (int, error) {
	text, err := a.do(http.MethodGet, "")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func (a *remoteAccount) write(balance int) error {
	_, err := a.do(http.MethodPut, strconv.Itoa(balance))
	return err
}

// do returns a *fence.StaleError if the account has seen a higher token.
func (a *remoteAccount) do(method, body string) (string, error) {
	req, err := http.NewRequest(method, a.url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := fence.ResponseError(resp); err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}
