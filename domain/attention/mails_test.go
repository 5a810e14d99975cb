package attention_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

const (
	hubID = domain.HubID("hub-7k2m-q4xd-93ta")
	site  = "01935f2e-0000-7000-8000-000000000001"
	other = "01935f2e-0000-7000-8000-000000000002"
)

var start = time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)

// rules allow five mails an hour.
var rules = attention.MailRules{
	MailsPerHour: 5,
	Title:        func(c attention.Condition) string { return string(c.Kind) },
}

// world is an organization whose hub a test changes.
type world struct {
	record *attention.Record
	org    domain.OrgState
	at     time.Time
	state  attention.HubState
	// doubt makes the hub's state uncertain, and gone takes the hub away.
	doubt, gone bool
	// mails are what was mailed: "<member> <begin|end|digest> <title>", with the number of notices
	// if there are several.
	mails []string
	ids   map[string]int
	// last are the mails that were queued last.
	last []attention.Mail
}

// newWorld returns an organization with the owner ann, the admin bob and the member carol.
func newWorld() *world {
	w := &world{record: new(attention.Record), at: start, ids: map[string]int{}}
	w.org.ID = "acme"
	for id, role := range map[string]domain.Role{
		"ann": domain.RoleOwner, "bob": domain.RoleAdmin, "carol": domain.RoleMember,
	} {
		w.org.Members = append(w.org.Members, domain.OrgMember{ID: id, Role: role})
	}
	w.state = attention.HubState{ID: hubID, Status: domain.HubOnline, Since: start}
	return w
}

// set sets a channel of device 3.
func (w *world) set(key, value string) {
	if len(w.state.Devices) == 0 {
		w.state.Devices = []attention.DeviceState{{ID: 3, Name: "Kitchen", Available: true}}
	}
	device := &w.state.Devices[0]
	device.Channels = slices.DeleteFunc(
		slices.Clone(device.Channels),
		func(c attention.ChannelState) bool { return c.Key == key },
	)
	device.Channels = append(device.Channels, attention.ChannelState{
		Key: key, Value: []byte(value), ObservedAt: w.at, ChangedAt: w.at,
		Logged: domain.LoggedTimes{Observed: w.at, Changed: w.at},
		Status: domain.ChannelSynchronized,
	})
}

// step observes and mails once, as the notifier does.
func (w *world) step() {
	hubs := map[domain.HubID]attention.ObservedHub{}
	if !w.gone {
		hubs[hubID] = attention.ObservedHub{
			State: w.state, Certain: !w.doubt, Doubtful: map[int64]bool{3: w.doubt},
			Name: "Hub 12", SiteID: site, Site: "North",
		}
	}
	for _, change := range w.record.Observe(w.at, hubs) {
		w.record.Apply(w.at, change, w.org, rules)
	}
	w.record.Decide(w.at, w.org, rules)
	w.queue()
}

// queue queues the mails.
func (w *world) queue() {
	mails := w.record.Outgoing()
	if len(mails) > 0 {
		w.last = mails
	}
	for _, m := range mails {
		w.ids[m.ID]++
		w.mails = append(w.mails, describe(m))
		w.record.Queued(m.ID)
	}
	slices.Sort(w.mails)
}

func describe(m attention.Mail) string {
	if m.Digest {
		return fmt.Sprintf("%s digest %d", m.MemberID, len(m.Notices)+m.More)
	}
	kind := "begin"
	if !m.Notices[0].Ended.IsZero() {
		kind = "end"
	}
	text := fmt.Sprintf("%s %s %s", m.MemberID, kind, m.Notices[0].Title)
	if n := len(m.Notices) + m.More; n > 1 {
		text += fmt.Sprintf(" ×%d", n)
	}
	return text
}

// pass observes every two seconds for a time.
func (w *world) pass(d time.Duration) {
	for end := w.at.Add(d); w.at.Before(end); w.at = w.at.Add(2 * time.Second) {
		w.step()
	}
}

// want compares the mails with those since the last call.
func (w *world) want(t *testing.T, when string, want ...string) {
	t.Helper()
	if !slices.Equal(w.mails, want) {
		t.Errorf("%s: got mails %q, want %q", when, w.mails, want)
	}
	w.mails = nil
}

// crash stores the record and loads it again, as another process does.
func (w *world) crash(t interface{ Fatal(...any) }) {
	text, err := w.record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if w.record, err = attention.DecodeRecord(text); err != nil {
		t.Fatal(err)
	}
}

func TestOneMailPerCauseAndOneWhenItEnds(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.set("smoke", "false")
	w.pass(time.Minute)
	w.want(t, "nothing is wrong")
	w.set("smoke", "true")
	w.step()
	w.want(t, "smoke", "ann begin smoke", "bob begin smoke")
	w.pass(time.Hour)
	w.crash(t)
	w.pass(time.Minute)
	w.want(t, "the smoke stands, over a crash")
	w.set("smoke", "false")
	w.pass(8 * time.Second)
	w.want(t, "the smoke may come back")
	w.pass(8 * time.Second)
	w.want(t, "the smoke has ended", "ann end smoke", "bob end smoke")
	w.pass(time.Hour)
	w.want(t, "nothing more")
	if w.record.Followed() != 0 {
		t.Errorf("%d conditions are followed, want none", w.record.Followed())
	}
}

func TestStartHolds(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.state.Status = domain.HubOffline
	w.pass(4 * time.Minute)
	w.state.Status = domain.HubOnline
	w.pass(time.Minute)
	w.want(t, "a hub that connects again in time")
	w.state.Status = domain.HubOffline
	w.pass(4 * time.Minute)
	w.record.Interrupt() // the service did not observe for a while
	w.pass(4 * time.Minute)
	w.want(t, "the hold begins again after an interruption")
	w.pass(2 * time.Minute)
	w.want(t, "a hub that is offline", "ann begin hub_offline", "bob begin hub_offline")
}

// Nothing ends that is only unknown, as after a rebuild or a restore.
func TestUnknownIsNotEnded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.set("smoke", "true")
	w.step()
	w.want(t, "smoke", "ann begin smoke", "bob begin smoke")
	before := w.state.Devices
	w.doubt, w.state.Devices = true, nil
	w.pass(time.Hour)
	w.want(t, "the device is not known at present")
	w.state.Devices = before
	w.pass(time.Minute)
	w.want(t, "the smoke is known again")
	w.set("smoke", "false") // a report after the smoke's begin, though the rest is in doubt
	w.pass(time.Minute)
	w.want(t, "a later report", "ann end smoke", "bob end smoke")
	w.set("leak", "true")
	w.step()
	w.want(t, "a leak of a hub in doubt", "ann begin leak", "bob begin leak")
	w.gone = true
	w.pass(time.Minute)
	w.gone, w.state.Devices = false, nil
	w.pass(time.Minute)
	w.want(t, "a hub that the organization has no more")
}

func TestFlappingIsDamped(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for range 60 {
		w.set("smoke", "true")
		w.pass(30 * time.Second)
		w.set("smoke", "false")
		w.pass(30 * time.Second)
	}
	// The first two times it is off for longer than EndHold, later not.
	w.want(
		t, "an hour of flapping", "ann begin smoke", "ann begin smoke", "ann end smoke",
		"bob begin smoke", "bob begin smoke", "bob end smoke",
	)
	for starts, want := range map[int]time.Duration{
		1: 10 * time.Second, 2: 30 * time.Second, 4: 270 * time.Second, 5: 810 * time.Second,
		6: 15 * time.Minute, 1000: 15 * time.Minute,
	} {
		if got := attention.EndHold(starts); got != want {
			t.Errorf("EndHold(%d): got %s, want %s", starts, got, want)
		}
	}
}

// prefer makes a member choose mails.
func (w *world) prefer(id string, p domain.MailPreferences) {
	for i := range w.org.Members {
		if w.org.Members[i].ID == id {
			w.org.Members[i].Mails = &p
		}
	}
}

// Warnings wait until quiet hours end, over a crash; alarms do not, and neither waits elsewhere.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	w := newWorld()
	topics := []domain.MailTopic{domain.MailSmoke, domain.MailBatteries}
	w.prefer("ann", domain.MailPreferences{
		Topics: topics, Quiet: &domain.QuietHours{From: "08:00", To: "11:00", Zone: "UTC"},
	})
	w.prefer("bob", domain.MailPreferences{Topics: topics})
	w.set("battery", "7")
	w.pass(2 * time.Minute)
	w.want(t, "a warning", "bob begin battery")
	w.set("smoke", "true")
	w.step()
	w.want(t, "an alarm in quiet hours", "ann begin smoke", "bob begin smoke")
	w.crash(t)
	w.set("battery", "90")
	w.pass(time.Hour)
	w.want(t, "the warning has ended", "bob end battery")
	if !w.record.Quiet() || !w.record.Settled() {
		t.Error("want a record with nothing but what waits for the end of the quiet hours")
	}
	w.pass(time.Hour)
	w.want(t, "quiet hours are over", "ann begin battery ×2")
}

// domain.TestMailPreferences tries which sites and topics a member has chosen.
func TestRecipients(t *testing.T) {
	t.Parallel()
	both := []domain.MailTopic{domain.MailSmoke, domain.MailBatteries}
	for name, c := range map[string]struct {
		change func(*world)
		key    string
		want   []string
	}{
		"a warning, by default": {func(*world) {}, "battery", nil},
		"a warning, chosen": {
			func(w *world) { w.prefer("carol", domain.MailPreferences{Topics: both}) },
			"battery", []string{"carol begin battery"},
		},
		"nothing": {
			func(w *world) { w.prefer("ann", domain.MailPreferences{}) },
			"smoke", []string{"bob begin smoke"},
		},
		"seen": {
			func(w *world) {
				w.org.Seen = []domain.SeenCondition{{
					HubID: hubID, Condition: "smoke/3/smoke/0", Since: start, MemberID: "ann",
				}}
			}, "smoke", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.change(w)
			if c.key == "battery" {
				w.set("battery", "7")
			} else {
				w.set(c.key, "true")
			}
			w.pass(2 * time.Minute)
			w.want(t, name, c.want...)
		})
	}
}

// The end goes to those who got the begin, unless they have left or chosen no mails since.
func TestEndGoesToThoseWhoGotTheBegin(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.set("smoke", "true")
	w.step()
	w.want(t, "smoke", "ann begin smoke", "bob begin smoke")
	w.org.Members = slices.DeleteFunc(
		w.org.Members, func(m domain.OrgMember) bool { return m.ID == "bob" },
	)
	for i := range w.org.Members {
		if w.org.Members[i].ID == "carol" {
			w.org.Members[i].Role = domain.RoleAdmin
		}
	}
	w.set("smoke", "false")
	w.pass(time.Minute)
	w.want(t, "bob has left and carol is an admin now", "ann end smoke")
	w.set("smoke", "true")
	w.step()
	for i := range w.org.Members {
		w.org.Members[i].Mails = &domain.MailPreferences{}
	}
	w.mails = nil
	w.set("smoke", "false")
	w.pass(5 * time.Minute)
	w.want(t, "everybody has unsubscribed")
}

// What stands when mails begin is mailed to nobody; what begins later is.
func TestAdopt(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.set("smoke", "true")
	w.at = w.at.Add(time.Minute)
	w.set("leak", "true")
	hubs := map[domain.HubID]attention.ObservedHub{hubID: {State: w.state, Certain: true}}
	w.record.Adopt(hubs, start.Add(30*time.Second))
	if !w.record.Changed() {
		t.Error("the record is not to be stored")
	}
	w.crash(t)
	w.pass(time.Minute)
	w.want(t, "a leak after the begin", "ann begin leak", "bob begin leak")
	w.set("smoke", "false")
	w.pass(time.Minute)
	w.want(t, "the smoke that stood before has ended")
	w.set("smoke", "true")
	w.pass(time.Minute)
	w.want(t, "smoke again", "ann begin smoke", "bob begin smoke")
}

// A member who has the hour's mails gets the rest in a digest, when the hour has room.
func TestDigest(t *testing.T) {
	t.Parallel()
	f := newFleet(30)
	for i := range 30 {
		f.put(i, fmt.Sprint("site", i), domain.HubOffline)
	}
	f.pass(5*time.Minute + 2*time.Second)
	f.want(t, "thirty hubs", slices.Repeat([]string{"ann begin hub_offline"}, 4)...)
	f.pass(2 * time.Minute)
	f.want(t, "the digest", "ann digest 26")
	for i := range 30 {
		f.put(i, fmt.Sprint("site", i), domain.HubOnline)
	}
	f.crash(t)
	f.pass(50 * time.Minute)
	f.want(t, "the hour has no room")
	f.pass(15 * time.Minute)
	f.want(t, "the digest of the next hour", "ann digest 30")
	for id, times := range f.ids {
		if times != 1 {
			t.Errorf("mail %s was queued %d times", id, times)
		}
	}
}

// So many hubs are offline that no more is followed: smoke is.
func TestUrgentConditionsAreFollowedBesides(t *testing.T) {
	t.Parallel()
	f := newFleet(0)
	for i := range attention.MaxConditions + 10 {
		f.put(i, "tower", domain.HubOffline)
	}
	f.pass(2 * time.Second)
	f.at = f.at.Add(6 * time.Minute)
	f.pass(2 * time.Second)
	f.want(t, "the outage", fmt.Sprintf("ann begin hub_offline ×%d", attention.MaxConditions))
	f.put(attention.MaxConditions+5, "tower", domain.HubOnline, 1)
	f.pass(2 * time.Second)
	f.want(t, "smoke", "ann begin smoke")
}

func TestTitlesAreClipped(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.set("smoke", "true")
	long := rules
	long.Title = func(attention.Condition) string { return strings.Repeat("é", 500) }
	hubs := map[domain.HubID]attention.ObservedHub{hubID: {State: w.state, Certain: true}}
	for _, change := range w.record.Observe(w.at, hubs) {
		w.record.Apply(w.at, change, w.org, long)
	}
	w.record.Decide(w.at, w.org, long)
	if got := []rune(w.record.Outgoing()[0].Notices[0].Title); len(got) != 120 {
		t.Errorf("got a title of %d characters, want 120", len(got))
	}
}
