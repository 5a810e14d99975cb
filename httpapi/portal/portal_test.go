package portal_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/net/html"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

const secret = "AaH8_O8cfTGDFqYDlZI-vAGh_PzxYXtujd-92QN_Bsp98U5BZPEvtYjE-iDy4Hh5XfwaafROGZPaD5D-GpPdHQ"

// invitations returns a fixed answer and records its calls.
type invitations struct {
	acceptance domain.Acceptance
	err        error
	asked      []string
	origins    []domain.Origin
}

func (i *invitations) AcceptInvitation(
	_ context.Context, o domain.Origin, token string,
) (domain.Acceptance, error) {
	i.asked, i.origins = append(i.asked, token), append(i.origins, o)
	return i.acceptance, i.err
}

func accepted(orgName string) *invitations {
	return &invitations{
		acceptance: domain.Acceptance{
			OrgName: orgName,
			Email:   "ann@example.org",
			Access:  domain.AccessAdmin,
		},
	}
}

const requestID = "01M7YFSWB1B2J5HN6GSRPC9BZB"

// handler routes requests as the API's router does.
func handler(cfg portal.Config) http.Handler {
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	router := chi.NewRouter()
	for _, route := range portal.New(cfg).Routes() {
		router.MethodFunc(
			route.Method,
			route.Pattern,
			func(w http.ResponseWriter, r *http.Request) {
				route.Handle(w, r, portal.RequestInfo{
					RequestID: requestID, At: now(), Network: netip.MustParsePrefix("192.0.2.1/32"),
					RecordError: func(err error) {
						log.Error("request", "request_id", requestID, "error", err)
					},
				})
			},
		)
	}
	return router
}

// serve answers one request.
func serve(pages http.Handler, method, path string, header http.Header) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	return w.Result()
}

func open(i *invitations, method string, header http.Header) *http.Response {
	return serve(
		handler(portal.Config{Invitations: i}), method, "/portal/invitations/"+secret, header,
	)
}

func read(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	streamstest.Must(t, err)
	return string(body)
}

func TestInvitationPage(t *testing.T) {
	t.Parallel()
	already := accepted("Acme")
	already.acceptance.Already = true
	for name, c := range map[string]struct {
		invitations *invitations
		status      int
		says        []string
	}{
		"joined": {
			accepted("Acme"), 200,
			[]string{"You have joined", "<bdi>Acme</bdi>", "ann@example.org", "admin"},
		},
		"already": {
			already, 200, []string{"You already belong to", "<bdi>Acme</bdi>", "already accepted"},
		},
		"expired": {
			&invitations{err: domain.ErrInvitationExpired}, 410,
			[]string{"has expired", "for a new invitation"},
		},
		"unknown": {
			&invitations{err: domain.ErrInvitationNotFound()}, 404,
			[]string{"does not work", "newer mail", "for a new invitation"},
		},
		"failed": {
			&invitations{err: errors.New("postgres is away")}, 500,
			[]string{"our side", "open the link again", "01M7YFSWB1B2J5HN6GSRPC9BZB"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response := open(c.invitations, "GET", nil)
			page := read(t, response)
			if response.StatusCode != c.status {
				t.Errorf("got %d, want %d", response.StatusCode, c.status)
			}
			has(t, page, c.says...)
			lacks(t, page, "postgres", secret)
			if c.invitations.asked[0] != secret || c.invitations.origins[0].RequestID == "" ||
				c.invitations.origins[0].At.IsZero() {
				t.Errorf(
					"got tokens %q by %+v, want one", c.invitations.asked, c.invitations.origins,
				)
			}
			checkHeaders(t, response.Header)
			checkPage(t, page)
		})
	}
}

func checkHeaders(t *testing.T, header http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
			"img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
			"frame-ancestors 'none'; base-uri 'none'",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The name of an organization is shown as text, whatever it contains. One that sets the direction
// of the text after it reversed the rest of the line, also beyond the element <bdi> around it.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</bdi></h1><h1>x",
		"{{.Email}}", "A\u202Egro", "Mill\u2067", "日本語の組織", "&amp;",
	} {
		page := read(t, open(accepted(name), "GET", nil))
		checkPage(t, page)
		document, err := html.Parse(strings.NewReader(page))
		streamstest.Must(t, err)
		for node := range document.Descendants() {
			if node.Data == "bdi" && node.Parent.Data == "h1" && node.FirstChild.Data != domain.PlainLine(name) {
				t.Errorf("name %q: got heading %q, want the name", name, node.FirstChild.Data)
			}
		}
	}
}

// HEAD requests and prefetches do not accept an invitation.
func TestPrefetchDoesNotAccept(t *testing.T) {
	t.Parallel()
	i := accepted("Acme")
	response := open(i, "HEAD", nil)
	checkHeaders(t, response.Header)
	if body := read(t, response); response.StatusCode != 200 || body != "" || len(i.asked) != 0 {
		t.Errorf(
			"HEAD: got %d, %q, %d accepted, want 200, no body, 0", response.StatusCode, body,
			len(i.asked),
		)
	}
	for name, value := range map[string]string{
		"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch", "X-Moz": "prefetch",
		"X-Purpose": "preview",
	} {
		if response := open(i, "GET", http.Header{name: {value}}); response.StatusCode != 503 ||
			len(i.asked) != 0 {
			t.Errorf(
				"%s: got %d, %d accepted, want 503, 0", name, response.StatusCode, len(i.asked),
			)
		}
	}
}

// Pages refer to assets by names that change with their content, and assets may be cached forever.
func TestAssets(t *testing.T) {
	t.Parallel()
	pages := handler(portal.Config{Invitations: accepted("Acme")})
	page := read(t, serve(pages, "GET", "/portal/invitations/x", nil))
	types := map[string]string{
		"css": "text/css; charset=utf-8", "svg": "image/svg+xml",
		"js": "text/javascript; charset=utf-8",
	}
	names := regexp.MustCompile(`"\.\./assets/([a-z]+\.[0-9a-f]{12}\.([a-z]+))"`).
		FindAllStringSubmatch(page, -1)
	if len(names) != 5 {
		t.Errorf("got files %q, want an icon, two styles and a script", names)
	}
	for _, name := range names {
		for _, method := range []string{"GET", "HEAD"} {
			response := serve(pages, method, "/portal/assets/"+name[1], nil)
			if response.StatusCode != 200 ||
				response.Header.Get("Content-Type") != types[name[2]] ||
				response.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
				(read(t, response) == "") != (method == "HEAD") {
				t.Errorf(
					"%s %s: got %d %v, want 200, immutable", method, name[1], response.StatusCode,
					response.Header,
				)
			}
		}
	}
	// Files were sent as they are, and with the scripts a hub's page was over its budget.
	for accepted, packed := range map[string]bool{
		"gzip, deflate, br": true, "gzip;q=0": false,
	} {
		response := serve(
			pages, "GET", "/portal/assets/"+names[0][1], http.Header{"Accept-Encoding": {accepted}},
		)
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != packed ||
			response.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: got %v, want gzip: %t", accepted, response.Header, packed)
		}
		reader := io.Reader(response.Body)
		if packed {
			var err error
			if reader, err = gzip.NewReader(response.Body); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(reader); err != nil ||
			!strings.HasPrefix(string(text), "<svg") && !strings.HasPrefix(string(text), "/*") {
			t.Errorf("Accept-Encoding %q: got %.20q, %v, want the file", accepted, text, err)
		}
	}
	for _, name := range []string{"style.css", "../portal.go", ""} {
		response := serve(pages, "GET", "/portal/assets/"+name, nil)
		if response.StatusCode != 404 {
			t.Errorf("asset %q: got %d, want 404", name, response.StatusCode)
		}
	}
}

// A client that has gone gets no page, and is not logged as a failure.
func TestClientGone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	pages := handler(
		portal.Config{
			Invitations: &invitations{err: context.Canceled},
			Logger:      slog.New(slog.NewTextHandler(&log, nil)),
		},
	)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	pages.ServeHTTP(
		w, httptest.NewRequestWithContext(ctx, "GET", "/portal/invitations/"+secret, nil),
	)
	if w.Body.Len() != 0 || log.Len() != 0 {
		t.Errorf("got %q, log %q, want neither", w.Body, log.String())
	}
}

// Forms were read before the session, so that one address without one held gigabytes.
func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	large := strings.Repeat("x", 65<<10)
	stranger := w.open(t, nil)
	for path, status := range map[string]int{
		"/portal/sign-in": http.StatusBadRequest, inOne + "/stream": http.StatusSeeOther,
		inOne + "/settings/own-name": http.StatusSeeOther,
	} {
		stranger.post(path, status, "name", large)
	}
	rest := strings.NewReader("name=" + strings.Repeat("x", 9<<10))
	request := httptest.NewRequest("POST", inOne+"/settings/own-name", rest)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	stranger.pages.ServeHTTP(httptest.NewRecorder(), request)
	if read := 9<<10 - rest.Len(); read > 8<<10+512 {
		t.Errorf("without a session %d bytes of a form were read, want some 8 KiB", read)
	}
	b := w.open(t, nil).signIn(max)
	b.post(inOne+"/settings/own-name", http.StatusBadRequest, "name", large)
	b.post("/portal/"+orgTwo+"/stream", http.StatusNotFound, "position", large)
}
