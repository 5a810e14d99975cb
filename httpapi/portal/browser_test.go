package portal_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// browser sends requests with cookies, and forms as a page of the portal does.
type browser struct {
	t       *testing.T
	backend *backend
	pages   http.Handler
	cookies map[string]string
}

// open returns a browser on a new portal with the backend.
func (w *backend) open(t *testing.T, change func(*portal.Config)) *browser {
	empty := &hubBackend{} // a hub without devices and events
	cfg := portal.Config{
		Devices: empty, Events: empty, Feed: idleFeed{&hubBackend{}},
		People: w.Access, Hubs: w.Access, SignIn: w.Store, ReadModels: w.Backend.Store, Directory: w,
		KeyUse: w, Mails: w, History: w, Faults: empty, Reported: empty,
		Book:      w.Backend.Store,
		PublicURL: public, Environment: domain.EnvironmentDev, Retention: w.retention, Now: w.clock,
	}
	if change != nil {
		change(&cfg)
	}
	return &browser{t: t, backend: w, pages: handler(cfg), cookies: map[string]string{}}
}

// newBrowser returns another browser on the same portal.
func (b *browser) newBrowser() *browser {
	return &browser{t: b.t, backend: b.backend, pages: b.pages, cookies: map[string]string{}}
}

func (b *browser) do(
	method, path string, form url.Values, header http.Header,
) (*http.Response, string) {
	b.t.Helper()
	sent := url.Values{}
	for name, values := range form {
		for _, value := range values {
			sent.Add(name, b.backend.toReal.Replace(value))
		}
	}
	r := httptest.NewRequest(
		method, public+b.backend.toReal.Replace(path), strings.NewReader(sent.Encode()),
	)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.pages.ServeHTTP(w, r)
	response := w.Result()
	for _, cookie := range response.Cookies() {
		if !cookie.HttpOnly || cookie.Path != "/" || cookie.SameSite != http.SameSiteLaxMode {
			b.t.Errorf("got cookie %v, want HttpOnly, Path=/ and SameSite=Lax", cookie)
		}
		b.cookies[cookie.Name] = cookie.Value
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	if location := response.Header.Get("Location"); location != "" {
		response.Header.Set("Location", b.backend.toConstants.Replace(location))
	}
	return response, b.backend.toConstants.Replace(read(b.t, response))
}

// get loads a page.
func (b *browser) get(path string, status int) string {
	b.t.Helper()
	response, page := b.do("GET", path, nil, nil)
	if response.StatusCode != status {
		b.t.Errorf("GET %s: got %d %s, want %d", path, response.StatusCode, page, status)
	}
	return page
}

// post submits a form with the session's token, and returns where the answer redirects to.
func (b *browser) post(path string, status int, fields ...string) (to, page string) {
	b.t.Helper()
	b.backend.forms++
	form := url.Values{
		"form_token": {portal.MaskToken(b.session().FormToken)},
		"once":       {fmt.Sprint("form ", b.backend.forms)},
	}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	response, page := b.do("POST", path, form, nil)
	if response.StatusCode != status {
		b.t.Errorf("POST %s: got %d %s, want %d", path, response.StatusCode, page, status)
	}
	if location := response.Header.Get("Location"); location != "" {
		base, err := url.Parse(public + path)
		streamstest.Must(b.t, err)
		where, err := base.Parse(location)
		streamstest.Must(b.t, err)
		to = where.RequestURI()
	}
	return to, page
}

// session returns the session of the browser's cookie; the zero value if there is none.
func (b *browser) session() domain.PortalSession {
	b.t.Helper()
	session, err := b.backend.Session(
		b.t.Context(), b.cookies["hubcloud_session"], b.backend.clock(),
	)
	if err != nil && domain.CodeOf(err) != domain.CodeUnauthenticated {
		b.t.Fatal(err)
	}
	session.Email = b.backend.toConstants.Replace(session.Email)
	return session
}

// signIn signs in with a mailed link.
func (b *browser) signIn(email string) *browser {
	b.t.Helper()
	b.post("/portal/sign-in", 200, "email", email)
	b.post(b.backend.mailedPath(), 303)
	if got := b.session().Email; got != email {
		b.t.Fatalf("signed in as %q, want %q", got, email)
	}
	return b
}

// has checks that a page has all texts, and returns the page.
func has(t *testing.T, page string, texts ...string) string {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(page, want) {
			t.Errorf("got %s, want %q in it", page, want)
		}
	}
	return page
}

// lacks checks that a page has none of the texts.
func lacks(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("got %s, want no %q in it", page, text)
		}
	}
}

// checkPage checks what every page promises: valid ids and references, relative links, form tokens,
// one heading, and no inline script or style. It returns the page.
func checkPage(t *testing.T, page string) string {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	streamstest.Must(t, err)
	count, ids := map[string]int{}, map[string]bool{}
	var named []string
	for node := range document.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		count[node.Data]++
		attributes := map[string]string{}
		for _, a := range node.Attr {
			attributes[a.Key] = a.Val
			if node.Data == "script" && (a.Key == "src" || a.Val == "application/json") {
				count["script"]--
			}
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("got <%s> with %s, want no inline style or script", node.Data, a.Key)
			}
			if a.Key == "aria-labelledby" || a.Key == "aria-describedby" || a.Key == "for" {
				named = append(named, strings.Fields(a.Val)...)
			}
		}
		if id, ok := attributes["id"]; ok {
			if ids[id] {
				t.Errorf("got two elements with id %q, want one", id)
			}
			ids[id] = true
		}
		for _, name := range []string{"src", "href", "action"} {
			if address := attributes[name]; strings.Contains(address, "//") ||
				strings.HasPrefix(address, "/") {
				t.Errorf("got <%s %s=%q>, want a relative address", node.Data, name, address)
			}
		}
		if node.Data == "form" && strings.EqualFold(attributes["method"], "post") &&
			strings.Contains(page, "Sign out") &&
			!strings.Contains(formOf(t, node), "form_token") {
			t.Error("got a form without form_token, want one with it")
		}
	}
	for _, id := range named {
		if !ids[id] {
			t.Errorf("got a reference to %q, want an element with this id", id)
		}
	}
	if count["h1"] != 1 || count["main"] != 1 || count["title"] != 1 || count["style"] != 0 ||
		count["script"] != 0 {
		t.Errorf("got elements %v, want one h1, main and title, no style and inline script", count)
	}
	return page
}

func formOf(t *testing.T, node *html.Node) string {
	t.Helper()
	var text strings.Builder
	streamstest.Must(t, html.Render(&text, node))
	return text.String()
}
