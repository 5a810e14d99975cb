package doctor

import (
	"context"
	"net"
	"testing"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/streams"
)

// silent listens and says nothing, as a process that hangs does.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

func limits() Limits {
	return Limits{
		SyncTime: time.Minute, OpenFiles: 1, ClockSkew: time.Minute, CertificateDays: 14,
		Storage: 90, Connections: 1, MailAge: time.Hour, Flaps: 6, HubFacts: 20,
	}
}

// Whatever hangs, every component is told in time, and each by what it is.
func TestNothingThatHangsHidesAnythingElse(t *testing.T) {
	t.Parallel()
	peer, dir := silent(t), t.TempDir()
	credentials := streams.Credentials{
		URL:    "nats://" + peer,
		Shards: 64,
		Users:  map[streams.Account]streams.User{},
	}
	for i := range 64 {
		credentials.Users[streams.ShardAccount(i)] = streams.User{User: "shard"}
	}
	credentials.Users[streams.AccountSys], credentials.Users[streams.AccountCloud] = streams.User{
		User: "sys",
	}, streams.User{
		User: "cloud",
	}
	began := time.Now()
	all := Check(t.Context(), Config{
		DataDir: dir, Bound: Bound{HTTP: peer, Admin: peer, MQTT: peer},
		Started:     &datadir.Started{Roles: []string{"api"}, Environment: "live", Sync: "always"},
		Credentials: credentials, PostgresURL: "postgres://" + peer + "/x?sslmode=disable",
		SMTPURL: "smtp://" + peer, Limits: limits(),
	})
	if took := time.Since(began); took > 10*patience {
		t.Errorf("it took %s", took)
	}
	verdicts := map[string]Verdict{}
	for _, c := range all {
		verdicts[c.Name] = c.Verdict
	}
	for name, want := range map[string]Verdict{
		"service": Wrong, "broker": Wrong, "disk": OK, "sync": OK, "open_files": Unknown,
		"clock": OK, "certificates": Wrong, "postgres": Wrong, "projections": Unknown,
		"mail": Wrong, "hubs": Unknown, "logs": Unknown,
	} {
		if verdicts[name] != want {
			t.Errorf("%s is %q, want %q", name, verdicts[name], want)
		}
	}
}

// A check that does not come back, whatever it is told, is given up, and the others are told.
func TestACheckThatDoesNotComeBackIsGivenUp(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	began := time.Now()
	all := examine(t.Context(), Config{}, []check{
		{"first", func(context.Context, *patient, *findings) { <-released }},
		{"second", func(_ context.Context, _ *patient, f *findings) { f.note("well") }},
	})
	if took := time.Since(began); took < patience || took > 10*patience {
		t.Errorf("it took %s", took)
	}
	if len(all) != 2 || all[0].Verdict != Unknown || all[0].OK || all[1].Verdict != OK ||
		all[1].Detail != "well" ||
		Healthy(all) {
		t.Errorf("%+v", all)
	}
}

// The worst that was found is the verdict, and only what has to be acted on is not ok.
func TestTheWorstIsTheVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found []Verdict
		want  Verdict
		ok    bool
	}{
		{nil, OK, true}, {[]Verdict{Skipped}, Skipped, true},
		{[]Verdict{Warning, Skipped}, Warning, true},
		{[]Verdict{Unknown, Warning}, Unknown, false},
		{[]Verdict{Wrong, Unknown, Warning}, Wrong, false},
	} {
		f := newFindings()
		for _, v := range c.found {
			f.add(v, "found", "do")
		}
		if got := f.component("c"); got.Verdict != c.want || got.OK != c.ok ||
			len(got.Advice) != len(c.found) {
			t.Errorf("%v: %+v", c.found, got)
		}
	}
}

// A clock is apart by what cannot be explained by the way there and back.
func TestClocksAreComparedInTheMiddle(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		theirs        time.Duration
		took          time.Duration
		apart, unsure time.Duration
	}{
		{0, 0, 0, 0}, {time.Second, 2 * time.Second, 0, time.Second}, {time.Hour, 0, time.Hour, 0},
		{-time.Minute, 2 * time.Second, -61 * time.Second, time.Second},
	} {
		if apart, unsure := offset(now.Add(c.theirs), now, now.Add(c.took)); apart != c.apart ||
			unsure != c.unsure {
			t.Errorf("%+v: %s, %s", c, apart, unsure)
		}
	}
	p := newPatient(
		t.Context(), Config{DataDir: t.TempDir(), Limits: Limits{ClockSkew: -time.Hour}},
	)
	f := newFindings()
	checkClock(t.Context(), p, f) // the file system's is never an hour less than apart
	if f.verdict != Wrong {
		t.Errorf("%+v", f)
	}
}

// Figures are written for people.
func TestFiguresForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 bytes", 999: "999 bytes", 1500: "1.5 kB", 123_456: "123 kB", 2_000_000_000: "2.0 GB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1ms", 90 * time.Second: "1 min", 3 * time.Hour: "3 h",
		72 * time.Hour: "3 days",
	} {
		if got := ago(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
	if got := several([]string{
		"a", "b", "c", "d", "e", "f", "g",
	}); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
}
