package faults

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

var (
	formToken = regexp.MustCompile(`name="form_token" value="([^"]+)"`)
	memberID  = regexp.MustCompile(`members/([0-9a-f-]+)/remove`)
)

// person is a browser without scripts. It keeps cookies for both replicas and submits the forms of
// pages.
type person struct {
	t      *testing.T
	client http.Client
	token  string
}

// signIn signs a person in by mail. Call it before starting a second replica, which would also
// deliver mails.
func signIn(t *testing.T, s *harness.Service, address string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	harness.Must(t, err)
	p := &person{t: t, client: http.Client{Jar: jar}}
	link := s.For(t).SignInLink(address, func() {
		p.post(s.Public()+"/portal/sign-in", http.StatusOK, "email", address)
	})
	p.post(s.Public()+link, http.StatusOK)
	page := p.get(s.Public()+"/portal/organizations", http.StatusOK)
	found := formToken.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("%s: not signed in: %s", address, page)
	}
	p.token = found[1]
	return p
}

func (p *person) get(address string, status int) string {
	p.t.Helper()
	answer, err := p.client.Get(address)
	return p.read(answer, err, address, status)
}

// post submits a form and follows the redirect.
func (p *person) post(address string, status int, fields ...string) string {
	p.t.Helper()
	answer, err := p.send(address, fields...)
	return p.read(answer, err, address, status)
}

func (p *person) send(address string, fields ...string) (*http.Response, error) {
	form := url.Values{"form_token": {p.token}}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return p.client.PostForm(address, form)
}

func (p *person) read(answer *http.Response, err error, address string, status int) string {
	p.t.Helper()
	harness.Must(p.t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	harness.Must(p.t, err)
	if answer.StatusCode != status {
		p.t.Fatalf("%s: got %d: %s", address, answer.StatusCode, page)
	}
	return string(page)
}

// watch opens the stream of an organization's page and returns a channel that is closed when the
// stream ends.
func (p *person) watch(page string) <-chan struct{} {
	p.t.Helper()
	answer, err := p.send(page + "/stream")
	harness.Must(p.t, err)
	first := make([]byte, 1)
	if _, err := io.ReadFull(answer.Body, first); err != nil ||
		answer.Header.Get("Content-Type") != "text/event-stream" {
		p.t.Fatalf(
			"%s/stream: got status %d, %v, want an event stream", page, answer.StatusCode, err,
		)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, answer.Body) // only the end matters
	}()
	p.t.Cleanup(func() {
		answer.Body.Close()
		<-ended
	})
	return ended
}

// people are an owner of an organization, who is signed in twice, and a member, Ben.
type people struct{ owner, again, ben *person }

// newPeople signs people in.
func newPeople(t *testing.T, s *harness.Service, tenant *harness.Tenant) people {
	t.Helper()
	all := people{owner: signIn(t, s, tenant.Owner), again: signIn(t, s, tenant.Owner)}
	tenant.Must(
		http.MethodPost, "/invitations",
		map[string]string{"email": "ben@example.org", "role": "member"}, http.StatusCreated,
	)
	invitation, err := url.Parse(s.Mails("ben@example.org", 1)[0].Link())
	harness.Must(t, err)
	all.again.get(s.Public()+invitation.Path, http.StatusOK)
	all.ben = signIn(t, s, "ben@example.org")
	return all
}

// at returns the person with failures reported to t.
func (p *person) at(t *testing.T) *person {
	other := *p
	other.t = t
	return &other
}

// overReplicas checks that a sign-out or a removal at one replica holds at the other as soon as it
// is answered, also for open pages. Regression: a stream at another replica continued until its next
// keepalive, half a minute later.
func (all people) overReplicas(t *testing.T, first, second *harness.Service, org string) {
	owner, again, ben := all.owner.at(t), all.again.at(t), all.ben.at(t)
	here, there := first.Public()+"/portal/"+org, second.Public()+"/portal/"+org
	expectEnd := func(what string, ended <-chan struct{}, began time.Time) {
		t.Helper()
		select {
		case <-ended:
			t.Logf("%s: the stream at the other replica ended after %s", what, time.Since(began))
		case <-time.After(25 * time.Second): // less than the 30 s of a keepalive
			t.Errorf("%s: stream at the other replica: still open, want it ended", what)
		}
	}

	watching, other := again.watch(there), owner.watch(there)
	began := time.Now()
	again.post(first.Public()+"/portal/sign-out", http.StatusOK)
	expectEnd("signed out", watching, began)

	if page := owner.get(there+"/members", http.StatusOK); !strings.Contains(
		page, "ben@example.org",
	) {
		t.Errorf("members at the other replica: got %s, want ben@example.org", page)
	}
	form := []string{"once", "one form", "name", "Twice"}
	owner.post(here+"/sites", http.StatusOK, form...)
	owner.post(there+"/sites", http.StatusOK, form...)
	if page := owner.get(here+"/sites", http.StatusOK); strings.Count(page, "<bdi>Twice<") != 1 {
		t.Errorf("form submitted to both replicas: got %s", page)
	}

	id := memberID.FindStringSubmatch(ben.get(there+"/members", http.StatusOK))[1]
	watching = ben.watch(there)
	began = time.Now()
	owner.post(here+"/members/"+id+"/remove", http.StatusOK)
	ben.get(there+"/members", http.StatusNotFound)
	expectEnd("removed", watching, began)
	select {
	case <-other:
		t.Error("stream of another person: ended, want it open")
	default:
	}
	if strings.Contains(
		ben.get(second.Public()+"/portal/organizations", http.StatusOK), org,
	) {
		t.Error("removed member: got the organization's page")
	}
}
