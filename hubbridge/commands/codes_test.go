package commands_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// lock is a lock whose hub may be away, fail, or not know codes.
type lock struct {
	mu       sync.Mutex
	presence domain.Presence
	fault    error
	away     int64 // a device that its hub does not reach
	own      []int64
	codes    map[int64]string
	sets     int
}

func (l *lock) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

func (l *lock) get(domain.HubID) (domain.Presence, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.presence, true
}

func (l *lock) Slots(context.Context, domain.HubID, int64) (protocol.CredentialSlots, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return protocol.CredentialSlots{Slots: l.own, Capacity: 30}, l.fault
}

func (l *lock) SetCredential(
	_ context.Context, _ domain.HubID, p protocol.CredentialParams,
) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sets++
	if p.DeviceID == l.away {
		return domain.Errorf(domain.CodeHubUnavailable, "the lock cannot be reached")
	}
	if l.fault == nil && p.Code != "" {
		l.codes[p.Slot] = p.Code
	}
	return l.fault
}

func (l *lock) RemoveCredential(_ context.Context, _ domain.HubID, _, slot int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.codes, slot)
	return l.fault
}

// silentReports loses what it is told of codes, as a process that ends in between does.
type silentReports struct{ commands.CodeDirectory }

func (silentReports) ReportCredential(
	context.Context, domain.HubID, string, string, string,
) error {
	return errors.New("the process has ended")
}

// codesTest is an installation with a hub, whose lock gets codes.
type codesTest struct {
	*installationtest.Installation
	*commands.Codes
	t    *testing.T
	hub  domain.HubID
	lock *lock
	stop func()
}

func newCodesTest(t *testing.T) *codesTest {
	t.Helper()
	c := &codesTest{
		Installation: installationtest.Open(t, streamstest.Start(t), installationtest.Config{}), t: t,
		hub: "hub-aaaa-bbbb-cccc", lock: &lock{codes: map[int64]string{}},
	}
	c.lock.presence = domain.Presence{Online: true, Credentials: true}
	c.CreateOrganization(t)
	c.RegisterHub(t, c.hub)
	c.AddHub(t, c.hub)
	return c
}

// start starts a process that sends codes, which stop ends.
func (c *codesTest) start(directory commands.CodeDirectory) {
	c.t.Helper()
	vault, err := streams.NewVault(make([]byte, 32))
	streamstest.Must(c.t, err)
	c.Codes, err = commands.NewCodes(commands.CodesConfig{
		Directory: directory, Locks: c.lock, Presence: c.lock.get, KV: c.Buckets.Codes,
		Conn: c.Conns.Cloud, Vault: vault, Parts: 1,
	})
	streamstest.Must(c.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Follow(ctx) })
	running.Go(func() { _ = c.Serve(ctx, 0, func() bool { return true }) })
	c.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	c.t.Cleanup(c.stop)
}

func (c *codesTest) set(version, code string) domain.Credential {
	c.t.Helper()
	return c.setAt(1, version, code)
}

func (c *codesTest) setAt(device int64, version, code string) domain.Credential {
	c.t.Helper()
	set, err := c.Set(c.t.Context(), installationtest.Operator, domain.SetCredential{
		OrgID: c.OrgID, HubID: c.hub, DeviceID: device, New: true, Version: version,
		Change: func(domain.CredentialTerms) domain.CredentialTerms {
			return domain.CredentialTerms{Label: "Cleaner"}
		},
	}, code)
	streamstest.Must(c.t, err)
	return set
}

// await waits for the state and the reason of the only code; "" is none.
func (c *codesTest) await(state domain.CredentialState, reason string) {
	c.t.Helper()
	streamstest.Eventually(c.t, "the code is "+string(state)+" "+reason, func() bool {
		all, err := c.Known(c.t.Context(), c.OrgID, c.hub, 1)
		if state == "" {
			return err == nil && len(all) == 0
		}
		return err == nil && len(all) == 1 && all[0].State == state && all[0].Reason == reason
	})
}

// bucket returns everything that waits.
func (c *codesTest) bucket() (values []byte) {
	c.t.Helper()
	all, err := jsapi.NewBucket(c.Conns.Cloud, streams.CodesBucket).All(c.t.Context())
	streamstest.Must(c.t, err)
	for _, e := range all {
		values = append(values, e.Value...)
	}
	return values
}

// A lock that is away gets its code when it is back; until then the code waits sealed, and a change
// of the label keeps it. A removal waits as well.
func TestCodeWaitsForItsLock(t *testing.T) {
	t.Parallel()
	c := newCodesTest(t)
	c.lock.change(func() { c.lock.presence.Online, c.lock.own = false, []int64{1} })
	c.start(c.Directory)
	set := c.set("v1", "482913")
	if set.Slot != 2 || set.State != domain.CredentialPending {
		t.Errorf("got %+v, want slot 2, after the lock's own code, pending", set)
	}
	_, err := c.Set(t.Context(), installationtest.Operator, domain.SetCredential{
		OrgID: c.OrgID, HubID: c.hub, DeviceID: 1, Slot: 2, Version: "v2",
		Change: func(t domain.CredentialTerms) domain.CredentialTerms { return t },
	}, "")
	streamstest.Must(t, err)
	if waiting := c.bucket(); len(waiting) == 0 || bytes.Contains(waiting, []byte("482913")) {
		t.Errorf("got %q in the bucket, want a sealed code", waiting)
	}
	c.lock.change(func() { c.lock.presence.Online = true })
	c.await(domain.CredentialActive, "")
	c.lock.change(func() {
		if c.lock.codes[2] != "482913" {
			t.Errorf("the lock has %v, want the code in slot 2", c.lock.codes)
		}
		c.lock.presence.Online = false
	})
	at := domain.CredentialSlot{DeviceID: 1, Slot: 2}
	streamstest.Must(t, c.Revoke(t.Context(), installationtest.Operator, c.OrgID, c.hub, at))
	c.await(domain.CredentialRevoked, "")
	c.lock.change(func() { c.lock.presence.Online = true })
	c.await("", "")
	c.lock.change(func() {
		if len(c.lock.codes) > 0 {
			t.Errorf("the lock has %v, want no code", c.lock.codes)
		}
	})
}

// A lock that its hub does not reach keeps no other lock of the hub waiting.
func TestCodePassesALockThatIsAway(t *testing.T) {
	t.Parallel()
	c := newCodesTest(t)
	c.lock.away = 1
	c.start(c.Directory)
	c.set("v1", "482913")
	streamstest.Eventually(t, "the lock that is away was tried", func() bool {
		c.lock.mu.Lock()
		defer c.lock.mu.Unlock()
		return c.lock.sets > 0
	})
	c.setAt(2, "v2", "713355")
	streamstest.Eventually(t, "the other lock has its code", func() bool {
		all, err := c.Known(t.Context(), c.OrgID, c.hub, 2)
		return err == nil && len(all) == 1 && all[0].State == domain.CredentialActive
	})
	c.await(domain.CredentialPending, "")
}

func TestCodeFails(t *testing.T) {
	t.Parallel()
	c := newCodesTest(t)
	c.start(c.Directory)
	c.lock.change(func() { c.lock.fault = domain.Errorf(protocol.ErrorLockFull, "no room") })
	c.set("v1", "482913")
	c.await(domain.CredentialFailed, protocol.ErrorLockFull)
	at := domain.CredentialSlot{DeviceID: 1, Slot: 1}
	streamstest.Must(t, c.Revoke(t.Context(), installationtest.Operator, c.OrgID, c.hub, at))
	c.await("", "")
	// A hub whose hello does not say that it sets codes is not asked.
	c.lock.change(func() { c.lock.presence.Credentials, c.lock.sets = false, 0 })
	c.set("v2", "482913")
	c.await(domain.CredentialFailed, domain.CredentialUnsupported)
	c.lock.change(func() {
		if c.lock.sets > 0 {
			t.Errorf("the hub was asked %d times, want never", c.lock.sets)
		}
	})
}

// A process that ends after the lock has the code, and before that is stored, leaves the code to the
// next one, which sends it again.
func TestCodeAfterACrash(t *testing.T) {
	t.Parallel()
	c := newCodesTest(t)
	c.start(silentReports{c.Directory})
	c.set("v1", "482913")
	streamstest.Eventually(t, "the lock has the code", func() bool {
		c.lock.mu.Lock()
		defer c.lock.mu.Unlock()
		return c.lock.codes[1] == "482913"
	})
	c.await(domain.CredentialPending, "")
	c.stop()
	c.start(c.Directory)
	c.await(domain.CredentialActive, "")
	streamstest.Eventually(t, "nothing waits", func() bool { return len(c.bucket()) == 0 })
}

// A made code is the same for the same request, so that a crash does not make two.
func TestMadeCode(t *testing.T) {
	t.Parallel()
	c := newCodesTest(t)
	c.start(c.Directory)
	first, err := c.Make(t.Context(), "one")
	again, errAgain := c.Make(t.Context(), "one")
	if err != nil || errAgain != nil || first != again || domain.CheckDoorCode("code", first) != nil {
		t.Errorf("got %q and %q, %v, %v, want one code", first, again, err, errAgain)
	}
	if bytes.Contains(c.bucket(), []byte(first)) {
		t.Error("the bucket has the code, want it sealed")
	}
}
