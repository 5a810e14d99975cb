package doctor

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// listenSilently listens and never answers, like a process that hangs.
func listenSilently(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

func limits() Limits {
	return Limits{
		SyncTime: time.Minute, OpenFiles: 1, ClockSkew: time.Minute, CertificateDays: 14,
		StorageUsed: 90, Connections: 1, MailAge: time.Hour, Flaps: 6, HubFacts: 20,
	}
}

// Servers that hang do not delay the checks of other components.
func TestHangingServers(t *testing.T) {
	t.Parallel()
	peer, dir := listenSilently(t), t.TempDir()
	credentials := streams.Credentials{
		URL:    "nats://" + peer,
		Shards: 64,
		Users:  map[streams.Account]streams.User{},
	}
	for i := range 64 {
		credentials.Users[streams.ShardAccount(i)] = streams.User{User: "shard"}
	}
	credentials.Users[streams.AccountSys] = streams.User{User: "sys"}
	credentials.Users[streams.AccountCloud] = streams.User{User: "cloud"}
	began := time.Now()
	all := Check(t.Context(), Config{
		DataDir: dir, Bound: installation.Endpoints{HTTP: peer, Admin: peer, MQTT: peer},
		Started:     &installation.Started{Roles: []string{"api"}, Environment: "live"},
		Credentials: credentials, PostgresURL: "postgres://" + peer + "/x?sslmode=disable",
		SMTPURL: "smtp://" + peer, Limits: limits(),
	})
	if took := time.Since(began); took > 10*(checkTimeout+grace) {
		t.Errorf("the checks took %s", took)
	}
	verdicts := map[string]Verdict{}
	for _, c := range all {
		verdicts[c.Name] = c.Verdict
	}
	for name, want := range map[string]Verdict{
		"service": Wrong, "broker": Unknown, "disk": OK, "sync": Unknown, "open_files": Unknown,
		"clock": OK, "certificates": Wrong, "postgres": Wrong, "projections": Unknown,
		"mail": Wrong, "hubs": Unknown, "logs": Unknown, "journal": Unknown,
	} {
		if verdicts[name] != want {
			t.Errorf("%s is %q, want %q", name, verdicts[name], want)
		}
	}
}

// A check that ignores its context is given up, and the others are reported.
func TestHangingCheckIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		defer close(released)
		all := runAll(time.Second, 3, func(i int, f *findings) {
			if i == 0 {
				<-released
			}
			f.note("fine")
		})
		if all[0].Verdict != Unknown || all[1].Verdict != OK || all[2].component("c").Detail != "fine" {
			t.Errorf("got %v, %v and %v, want unknown, and twice ok", all[0], all[1], all[2])
		}
	})
}

func TestWorstFindingIsTheVerdict(t *testing.T) {
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
			f.add(v, "found").todo("do")
		}
		if got := f.component("c"); got.Verdict != c.want || got.OK != c.ok ||
			len(got.Advice) != len(c.found) {
			t.Errorf("%v: got %+v, want %s, ok %v", c.found, got, c.want, c.ok)
		}
	}
}

// The time of a request does not count as a difference of clocks.
func TestClockOffset(t *testing.T) {
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
			t.Errorf("offset(%+v): got %s, %s", c, apart, unsure)
		}
	}
	target := newTarget(
		t.Context(), Config{DataDir: t.TempDir(), Limits: Limits{ClockSkew: -time.Hour}},
	)
	f := newFindings()
	checkClock(t.Context(), target, f) // no difference is below a limit of -1h
	if f.Verdict != Wrong {
		t.Errorf("verdict is %s, want %s", f.Verdict, Wrong)
	}
}
