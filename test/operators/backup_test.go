package operators

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// disaster is an installation that is backed up while in use, destroyed, and restored.
type disaster struct {
	t *testing.T
	*harness.Service
	tenant *harness.Tenant
	// hub reports by itself during the whole test. raw sends only what the test makes it send.
	hub *virtualhub.Hub
	raw *harness.RawHub
	// owner has a portal session from before the backup.
	owner *person
	// answers has the answers to reads at the time of the backup, by path.
	answers map[string]string
	// link is the link of an invitation that was pending at the time of the backup.
	link string
	// before has the hub's events from before the backup, after the events stored after it. ends
	// has a cursor of the log's end from before the backup, and one from after it.
	before, after []harness.Event
	ends          []string
	// commandAnswer is the answer to a command with an Idempotency-Key. revokedKey is an API key
	// that was revoked after the backup.
	commandAnswer []byte
	revokedKey    string
}

const (
	battery = "battery"
	invited = "guest@disaster.example.com"
)

// TestBackup takes a backup while clients write, kills the service, deletes the data directory and
// restores it, first without hub logs, then with them. The API must work afterwards.
func TestBackup(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(t, "--rate", "10000", "--burst", "10000")
	d := &disaster{t: t, Service: c.OwnService(), tenant: c.Tenant("Disaster")}
	d.hub = c.VirtualHub(
		d.tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}},
	)
	d.raw = c.Online(d.tenant)
	d.createContent()

	plain, full := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "full")
	d.saveAnswers()
	enrolled := d.metric(`hubcloud_identity_enrolments_total`)
	stop := d.keepBusy()
	taken := d.CLI("backup", plain)[0]
	d.CLI("backup", full, "--hub-logs")
	stop()
	if taken["hub_logs"] != false || taken["authority"] != true ||
		taken["directory_sequence"].(float64) < 10 ||
		enrolled == "" {
		t.Errorf(
			"backup: got %v and enrolments %q, want the authority, no hub logs, at least 10 "+
				"events of the directory, and some enrolments", taken, enrolled,
		)
	}
	d.changeAfterBackup()

	d.checkRejections(plain)
	d.destroy()
	d.CLI("restore", plain)
	d.Begin()
	t.Run("without hub logs", func(t *testing.T) { d.in(t).checkRestored(false) })

	d.raw.Disconnect()
	d.destroy()
	d.CLI("restore", full)
	d.Begin()
	t.Run("with hub logs", func(t *testing.T) { d.in(t).checkRestored(true) })
}

// in returns a copy that reports failures to t.
func (d *disaster) in(t *testing.T) *disaster {
	other := *d
	other.t, other.Service, other.tenant = t, d.For(t), d.tenant.For(t)
	return &other
}

// createContent creates the content that a restore must bring back.
func (d *disaster) createContent() {
	d.t.Helper()
	d.tenant.Must(http.MethodPatch, "/hubs/"+d.hub.ID(), `{"name":"Front hub"}`, http.StatusOK)
	d.tenant.Must(
		http.MethodPatch, "/hubs/"+d.hub.ID()+"/devices/1", `{"name":"Entrance","room":"Hall"}`,
		http.StatusOK,
	)
	d.tenant.Must(
		http.MethodPost, "/invitations", map[string]string{"email": invited}, http.StatusCreated,
	)
	d.link = d.Mails(invited, 1)[0].Link()
	d.owner = signIn(d.t, d.Service, d.tenant.Owner)
	if !d.owner.isSignedIn(d.t) {
		d.t.Error("the owner's session is not signed in")
	}
	d.commandAnswer = d.command()
	for n := range 5 {
		d.report(50 + n)
	}
	d.raw.EventsFrom("log-1", 1, 5)
	d.raw.WaitAck("log-1", 5)
	harness.Stored(d.t, d.hub)
	d.before = d.tenant.AllEvents(d.hub.ID(), "")
	d.ends = append(d.ends, d.end())
}

// command sends a command, always with the same Idempotency-Key, and returns the answer.
func (d *disaster) command() []byte {
	d.t.Helper()
	return d.tenant.Must(
		http.MethodPost, "/hubs/"+d.hub.ID()+"/devices/1/commands",
		`{"key":"lock","value":false}`, http.StatusAccepted, "Idempotency-Key", "the only one",
	).Body
}

// report makes the hub report a level of the battery.
func (d *disaster) report(value int) {
	d.t.Helper()
	harness.Must(d.t, d.hub.Report(1, virtualhub.ChannelRef{Key: battery}, value))
}

// end returns a cursor of the end of the hub's log.
func (d *disaster) end() string {
	d.t.Helper()
	return d.tenant.Must(
		http.MethodGet, "/hubs/"+d.hub.ID()+"/devices", nil, http.StatusOK,
	).Header.Get("Event-Cursor")
}

// saveAnswers saves the answers of lists and single reads.
func (d *disaster) saveAnswers() {
	d.t.Helper()
	d.answers = map[string]string{}
	for _, path := range []string{
		"/sites", "/hubs?site_id=" + d.tenant.Site, "/members", "/invitations",
		"/hubs/" + d.hub.ID(), "/hubs/" + d.hub.ID() + "/devices",
	} {
		d.answers[path] = d.read(path)
	}
}

// read returns an answer without the values that change on their own: connection and network.
func (d *disaster) read(path string) string {
	d.t.Helper()
	answer := d.tenant.Must(http.MethodGet, path, nil, http.StatusOK).Object(d.t)
	var removeChanging func(v any)
	removeChanging = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"connection", "network"} {
				delete(v, name)
			}
			for _, inner := range v {
				removeChanging(inner)
			}
		case []any:
			for _, inner := range v {
				removeChanging(inner)
			}
		}
	}
	removeChanging(answer)
	text, err := json.Marshal(answer)
	harness.Must(d.t, err)
	return string(text)
}

// keepBusy writes to another organization and lets the hub report, until stop is called.
func (d *disaster) keepBusy() (stop func()) {
	d.t.Helper()
	other := harness.NewTenant(d.t, d.Service, "Busy")
	stopped := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stopped:
				return
			default:
			}
			if answer, err := other.Do(http.MethodPost, "/sites", map[string]string{
				"name": fmt.Sprint("Site ", n),
			}); err != nil ||
				answer.Status != http.StatusCreated {
				d.t.Errorf(
					"create a site during the backup: got status %d, %v, want 201", answer.Status,
					err,
				)
				return
			}
			// An error only means that the test has ended.
			_ = d.hub.Report(1, virtualhub.ChannelRef{Key: battery}, n%50)
		}
	})
	stop = sync.OnceFunc(func() {
		close(stopped)
		writing.Wait()
	})
	d.t.Cleanup(stop)
	return stop
}

// changeAfterBackup makes changes that are in no backup.
func (d *disaster) changeAfterBackup() {
	d.t.Helper()
	harness.Stored(d.t, d.hub)
	last := d.end()
	for n := range 5 {
		d.report(90 + n)
	}
	d.raw.EventsFrom("log-1", 6, 9)
	d.raw.WaitAck("log-1", 9)
	harness.Stored(d.t, d.hub)
	d.after = d.tenant.AllEvents(d.hub.ID(), last)
	d.ends = append(d.ends, d.end())
	// A report of the last command may come among them.
	if len(d.after) < 5 {
		d.t.Fatalf("events after the backup: got %s, want the 5 reports", harness.FormatEvents(d.after))
	}
	d.tenant.Must(http.MethodPost, "/sites", `{"name":"Too late"}`, http.StatusCreated)
	id, key := d.Key(d.tenant.Org)
	d.CLI("key", "revoke", id)
	d.revokedKey = key
}

// checkRejections checks that restore rejects a data directory in use and a damaged backup, and
// that backup rejects a directory with a backup.
func (d *disaster) checkRejections(backup string) {
	d.t.Helper()
	_, stderr, code := harness.RunBinary(d.t, "restore", "--data-dir", d.Dir, backup)
	if code != 1 || !strings.Contains(stderr, "is not empty") {
		d.t.Errorf("restore over a running service: got exit code %d, want 1: %s", code, stderr)
	}
	_, stderr, code = harness.RunBinary(d.t, "backup", "--data-dir", d.Dir, backup)
	if code != 1 || !strings.Contains(stderr, "is not empty") {
		d.t.Errorf("backup over another backup: got exit code %d, want 1: %s", code, stderr)
	}
	path := filepath.Join(backup, "streams", "DIRECTORY.snapshot")
	content, err := os.ReadFile(path)
	harness.Must(d.t, err)
	content[len(content)/2] ^= 1
	harness.Must(d.t, os.WriteFile(path, content, 0o600))
	empty := filepath.Join(d.t.TempDir(), "empty")
	_, stderr, code = harness.RunBinary(d.t, "restore", "--data-dir", empty, backup)
	if _, err := os.Stat(empty); code != 1 ||
		!strings.Contains(stderr, "streams/DIRECTORY.snapshot") ||
		err == nil {
		d.t.Errorf(
			"restore of a damaged backup: got exit code %d, want 1 and no directory: %s", code,
			stderr,
		)
	}
	content[len(content)/2] ^= 1
	harness.Must(d.t, os.WriteFile(path, content, 0o600))
	if checked := d.CLI("restore", backup, "--check")[0]; checked["dir"] != backup {
		d.t.Errorf("restore --check: got %v, want dir %s", checked, backup)
	}
}

// destroy kills the service, deletes its data, and leaves a data directory as an interrupted
// restore leaves it. The service must not start with such a directory.
func (d *disaster) destroy() {
	d.t.Helper()
	d.Kill()
	// The database of a killed service exits by itself and writes until then.
	streamstest.Eventually(d.t, "the data directory is gone",
		func() bool { return os.RemoveAll(d.Dir) == nil },
	)
	harness.Must(d.t, os.MkdirAll(d.Dir, 0o700))
	for _, name := range []string{"RESTORING", "half"} {
		harness.Must(d.t, os.WriteFile(filepath.Join(d.Dir, name), nil, 0o600))
	}
	_, stderr, code := harness.RunBinary(
		d.t, "serve", "--data-dir", d.Dir, "--http", d.HTTP, "--admin", d.Admin, "--mqtt", d.MQTT,
		"--nats", d.NATS,
	)
	if code != 1 || !strings.Contains(stderr, "run `hubcloud restore` again") {
		d.t.Errorf("start on an interrupted restore: got exit code %d, want 1: %s", code, stderr)
	}
}

// checkRestored checks that everything in the backup is restored and that clients get no wrong
// answer about later changes.
func (d *disaster) checkRestored(hubLogs bool) {
	t, hub := d.t, d.hub.ID()
	if _, err := os.Stat(filepath.Join(d.Dir, "half")); err == nil {
		t.Error("the restore kept files of the interrupted one")
	}
	streamstest.Eventually(t, "the hub is back", func() bool {
		answer, err := d.tenant.Do(http.MethodGet, "/hubs/"+hub+"/devices", nil)
		return err == nil && answer.Status == http.StatusOK
	})
	for path, want := range d.answers {
		if got := d.read(path); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
	if got := d.metric(`hubcloud_identity_enrolments_total`); strings.Contains(
		got, `result="issued"} 1`,
	) {
		t.Errorf("enrolments after the restore: got %s, want none", got)
	}
	harness.NewClient(t, d.Base(), d.revokedKey).
		Rejected(http.MethodGet, "/sites", nil, "unauthenticated")
	if d.owner.isSignedIn(t) {
		// The owner may have signed out after the backup.
		t.Error("a session from before the restore is still valid")
	}
	if got := d.command(); string(got) != string(d.commandAnswer) {
		t.Errorf("repeated command: got %s, want %s", got, d.commandAnswer)
	}

	// More new events than there were before, so that every earlier sequence is used again.
	harness.Stored(t, d.hub)
	for n := range len(d.before) + len(d.after) + 200 {
		d.report(n % 100)
	}
	harness.Stored(t, d.hub)
	d.report(33)
	d.tenant.Await(hub, "", "the last report", func(e harness.Event) bool {
		return e.Type == "channel.observed" && e.Observed().Key == battery &&
			string(e.Observed().Value) == "33"
	})
	for i, e := range d.before {
		if !hubLogs {
			d.checkExpired(e.Cursor)
			continue
		}
		page := d.tenant.Events(hub, e.Cursor, 1, 0)
		if i+1 < len(d.before) &&
			(len(page.Data) != 1 || page.Data[0].Cursor != d.before[i+1].Cursor) {
			t.Errorf(
				"after event %d of the backup: got %s, want cursor %s", i,
				harness.FormatEvents(page.Data), d.before[i+1].Cursor,
			)
		}
	}
	for _, e := range d.after {
		d.checkExpired(e.Cursor)
	}
	d.checkExpired(d.ends[1])
	if !hubLogs {
		d.checkExpired(d.ends[0])
	}

	// Neither the service nor the hub has the events that this hub sent after the backup.
	d.raw.Connect()
	d.raw.Hello("log-1", 10, 9)
	d.raw.WaitAck("log-1", 9)
	d.raw.EventsFrom("log-1", 10, 10)
	d.raw.WaitAck("log-1", 10)
	reported := harness.FormatEvents(d.tenant.AllEvents(d.raw.ID, ""))
	if !strings.Contains(reported, `"to":9`) || !strings.Contains(reported, `"value":10`) ||
		hubLogs && !strings.Contains(reported, `"from":6`) {
		t.Errorf("hub log: got%s\nwant a gap up to 9 and the event 10", reported)
	}
	if page := harness.Open(t, http.MethodGet, d.link); page.Status != http.StatusOK {
		t.Errorf("invitation link: got status %d, want 200", page.Status)
	}
	for _, line := range d.CLI("projections", "verify") {
		if differences, ok := line["differences"].([]any); !ok || len(differences) > 0 {
			t.Errorf("projections verify: got %v, want no differences", line)
		}
	}
	if members := d.read("/members"); !strings.Contains(members, invited) {
		t.Errorf("members: got %s, want %s among them", members, invited)
	}
}

// checkExpired checks that a page, a long poll and a stream reject a cursor as expired.
func (d *disaster) checkExpired(cursor string) {
	d.t.Helper()
	path := "/hubs/" + d.hub.ID() + "/events"
	for _, wait := range []string{"", "&wait=5"} {
		d.tenant.Rejected(
			http.MethodGet, path+"?after="+url.QueryEscape(cursor)+wait, nil, "cursor_expired",
		)
	}
	stream, answer, err := d.tenant.TryStream(path+"/stream", cursor)
	if err != nil || stream != nil || answer.Status != http.StatusGone {
		d.t.Errorf(
			"stream from an expired cursor: got %v, status %d, %s, want 410", err, answer.Status,
			answer.Body,
		)
	}
	if stream != nil {
		stream.Close()
	}
}

// metric returns the lines of a metric.
func (d *disaster) metric(name string) string {
	d.t.Helper()
	answer := harness.Open(d.t, http.MethodGet, "http://"+d.Admin+"/metrics")
	var lines []string
	for line := range strings.Lines(string(answer.Body)) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
