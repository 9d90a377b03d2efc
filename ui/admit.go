package ui

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// policy lets the page run its own script and style, and ask its own server,
// and nothing else. No page may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets what every answer has, errors too.
func setHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control": "no-store", "Vary": "Sec-Fetch-Site, Sec-Fetch-Mode, Sec-Fetch-Dest, Origin",
	} {
		h.Set(name, value)
	}
}

// admit reports whether a request may be answered; if not, it refuses it.
func (u *UI) admit(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "the page is for reading: GET and HEAD")
	case len(u.opts.Hosts) > 0 && !slices.Contains(u.opts.Hosts, hostOf(r.Host)):
		refuse(w, http.StatusMisdirectedRequest, fmt.Sprintf("the page is not served under the host name %q", visibleText(r.Host)))
	case !ownSite(r):
		refuse(w, http.StatusForbidden, "pages of other sites may link to this one, and not read it")
	default:
		return true
	}
	return false
}

// hostOf returns the host of a Host header, in lower case and without a port.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ownSite reports whether a request comes from the page itself, from a user who
// follows a link, or from no browser. Browsers say so in headers that scripts
// cannot set.
func ownSite(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		// Browsers do not send it with a GET to the page's own site.
		from, err := url.Parse(origin)
		if err != nil || from.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.URL.Path != "/events"
}

// refuse answers with an error, in plain text.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
