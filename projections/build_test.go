package projections

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/streams"
)

// control opens an operator's view of the read models.
func (w *world) control(t testing.TB) *Control {
	t.Helper()
	c, err := OpenControl(t.Context(), ControlConfig{
		URL: w.url, InstallationID: "test", Directory: w.dir, Presence: w.buckets.Presence, Log: testLog(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// storing puts events into the directory as they are, many at once.
type storing struct {
	w    *world
	msgs []*nats.Msg
	last uint64
}

func (s *storing) tell(t testing.TB, subject string, fact domain.Fact) {
	t.Helper()
	event := domain.Record(domain.Origin{At: time.Now().Add(-time.Hour), Actor: byOperator}, fact)
	event.ID = ulid.Make().String()
	data, err := domain.EncodeEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	s.msgs = append(s.msgs, &nats.Msg{Subject: subject, Data: data})
	if len(s.msgs) == 500 {
		s.flush(t)
	}
}

func (s *storing) flush(t testing.TB) uint64 {
	t.Helper()
	if len(s.msgs) > 0 {
		last, err := streams.Store(t.Context(), s.w.conns.Cloud, s.msgs...)
		if err != nil {
			t.Fatal(err)
		}
		s.msgs, s.last = nil, last
	}
	return s.last
}

func TestTrial(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("TRIAL"))
	if n == 0 {
		t.Skip()
	}
	w := newWorld(t)
	s := w.open(t)
	all := &storing{w: w}
	for i := range n / 4 {
		o := fmt.Sprintf("01930000-0000-7000-8000-%012d", i%500)
		site := fmt.Sprintf("01930000-0000-7000-9000-%012d", i)
		hub := domain.HubID(fmt.Sprintf("hub-%04d-%04d-%04d", i/100000000, i/10000, i%10000))
		all.tell(t, streams.SiteSubject(o, site), domain.SiteCreated{OrgID: o, SiteID: site, Name: "Site " + site})
		all.tell(t, streams.HubSubject(hub), domain.HubAdded{HubID: hub, OrgID: o, SiteID: site, Incarnation: fmt.Sprintf("%08x", i)})
		m := fmt.Sprintf("01930000-0000-7000-a000-%012d", i)
		all.tell(t, streams.OrgSubject(o), domain.MemberAdded{OrgID: o, MemberID: m, Email: fmt.Sprintf("person%d@example.org", i), Role: domain.RoleMember})
		k := fmt.Sprintf("%012d", i)
		all.tell(t, streams.KeySubject(k), domain.KeyCreated{KeyID: k, OrgID: o, Label: "key", Environment: "live", Scopes: domain.AllScopes(), SecretHash: make([]byte, 32)})
	}
	head := all.flush(t)
	begun := time.Now()
	w.project(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := s.WaitFor(ctx, head); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events one by one: %s", head, time.Since(begun))
	c := w.control(t)
	for range 3 {
		begun = time.Now()
		if err := c.Rebuild(t.Context(), func(p BuildProgress) { t.Logf("%+v", p) }); err != nil {
			t.Fatal(err)
		}
		t.Logf("rebuilt: %s", time.Since(begun))
	}
}
