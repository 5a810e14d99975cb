package projectionstest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// The tests' two organizations.
const (
	Org      = "01930000-0000-7000-8000-00000000000a"
	OtherOrg = "01930000-0000-7000-8000-00000000000b"
)

// Operator is the actor of the tests' events.
var Operator = domain.Actor{Kind: domain.ActorOperator}

// SiteID returns the id of the tests' site n.
func SiteID(n int) string { return fmt.Sprintf("01930000-0000-7000-8000-%012d", n) }

// HubID returns the id of the tests' hub n.
func HubID(n int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-%04d-0000-0000", n)) }

// MemberID returns the id of the tests' member n.
func MemberID(n int) string { return fmt.Sprintf("01930000-0000-7000-8000-00000001%04d", n) }

// InvitationID returns the id of the tests' invitation n.
func InvitationID(n int) string { return fmt.Sprintf("01930000-0000-7000-8000-00000002%04d", n) }

// HubAdded returns the fact that an organization adds a hub.
func HubAdded(org string, hub, site int) domain.HubAdded {
	return domain.HubAdded{
		HubID: HubID(
			hub,
		), OrgID: org, SiteID: SiteID(site), EpochID: domain.NewEpochID(uint32(hub)),
	}
}

// HubMoved returns the fact that a hub is moved to another site.
func HubMoved(org string, hub, site int) domain.HubMoved {
	return domain.HubMoved{HubID: HubID(hub), OrgID: org, SiteID: SiteID(site)}
}

// MemberAdded returns the fact that member n joins an organization.
func MemberAdded(org string, n int, role domain.Role) domain.MemberAdded {
	return domain.MemberAdded{
		MemberID: MemberID(n), OrgID: org, Email: fmt.Sprintf("P%d@example.org", n), Role: role,
	}
}

// RoleChanged returns the fact that member n gets another role.
func RoleChanged(org string, n int, role domain.Role) domain.MemberRoleChanged {
	return domain.MemberRoleChanged{MemberID: MemberID(n), OrgID: org, Role: role}
}

// MemberRemoved returns the fact that member n leaves an organization.
func MemberRemoved(org string, n int) domain.MemberRemoved {
	return domain.MemberRemoved{MemberID: MemberID(n), OrgID: org}
}

// MemberInvited returns the fact that invitation n is sent.
func MemberInvited(org string, n int, expires time.Time, replaces string) domain.MemberInvited {
	return domain.MemberInvited{
		InvitationID: InvitationID(n), OrgID: org, Email: fmt.Sprintf("I%d@example.org", n),
		Role: domain.RoleMember, TokenHash: make([]byte, 32), ExpiresAt: expires,
		Replaces: replaces,
	}
}

// Append appends facts about one subject to the directory, without any checks, and returns the
// sequence of the last.
func (e *Env) Append(t testing.TB, subject string, facts ...domain.Fact) uint64 {
	t.Helper()
	return e.AppendAt(t, time.Now(), subject, facts...)
}

// AppendAt is Append with the time of the events.
func (e *Env) AppendAt(t testing.TB, at time.Time, subject string, facts ...domain.Fact) uint64 {
	t.Helper()
	last, err := e.Directory.Load(
		t.Context(), subject, 0, func(uint64, domain.Event) error { return nil },
	)
	streamstest.Must(t, err)
	events := make([]domain.Event, len(facts))
	for i, fact := range facts {
		events[i] = domain.Record(domain.Origin{At: at, Actor: Operator}, fact)
	}
	seq, err := e.Directory.Append(t.Context(), subject, last, events...)
	streamstest.Must(t, err)
	return seq
}

// Do appends facts about one subject and waits until w has them.
func (e *Env) Do(t testing.TB, w Waiter, subject string, facts ...domain.Fact) {
	t.Helper()
	Await(t, w, e.Append(t, subject, facts...))
}

// AddSite appends the creation of site n and returns its sequence.
func (e *Env) AddSite(t testing.TB, org string, n int) uint64 {
	t.Helper()
	return e.Append(
		t, streams.SiteSubject(org, SiteID(n)),
		domain.SiteCreated{OrgID: org, SiteID: SiteID(n), Name: fmt.Sprint("Site ", n)},
	)
}

// AddHub appends the addition of a hub and returns its sequence.
func (e *Env) AddHub(t testing.TB, org string, hub, site int) uint64 {
	t.Helper()
	return e.Append(t, streams.HubSubject(HubID(hub)), HubAdded(org, hub, site))
}

// StoreRaw stores bytes in the directory that Append would reject.
func (e *Env) StoreRaw(t testing.TB, subject string, data []byte) uint64 {
	t.Helper()
	seq, err := jsapi.Append(t.Context(), e.Conns.Cloud, &nats.Msg{Subject: subject, Data: data})
	streamstest.Must(t, err)
	return seq
}

// PutPresence puts a hub's presence into the bucket.
func (e *Env) PutPresence(t testing.TB, p domain.Presence) {
	t.Helper()
	value, err := json.Marshal(p)
	streamstest.Must(t, err)
	e.PutPresenceValue(t, p.HubID, value)
}

// PutPresenceValue puts bytes into the presence bucket and returns their revision.
func (e *Env) PutPresenceValue(t testing.TB, hub domain.HubID, value []byte) uint64 {
	t.Helper()
	revision, err := e.Buckets.Presence.Put(t.Context(), string(hub), value)
	streamstest.Must(t, err)
	return revision
}

// Head returns the sequence of the directory's last event.
func (e *Env) Head(t testing.TB) uint64 {
	t.Helper()
	head, err := e.Directory.Head(t.Context(), 0)
	streamstest.Must(t, err)
	return head
}
