package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/mailserver"
)

var (
	attackFlag = flag.Duration(
		"bench.attack", 20*time.Second, "how long each attack of the measurement fairness lasts",
	)
	attacksFlag = flag.String(
		"bench.attacks", "", "the attacks of the measurement fairness, by comma; \"\" for all",
	)
	attackRoundsFlag = flag.Int("bench.attack.rounds", 1, "how many times each attack is measured")
)

// floodAhead is how many events an attacker sends before they are acknowledged.
const floodAhead = 1000

// attacks are what one organization does to the others. Each goes on until ctx ends.
var attacks = []struct {
	name string
	run  func(ctx context.Context, a attacker)
}{
	{"channels", func(ctx context.Context, a attacker) {
		a.flood(ctx, func(event map[string]any, seq uint64) {
			event["device_id"] = 1 + seq/100
			event["data"] = map[string]any{"key": fmt.Sprint("channel_", seq), "endpoint": 0, "value": 1}
		})
	}},
	{"bytes", func(ctx context.Context, a attacker) {
		text := strings.Repeat("x", 3000)
		a.flood(ctx, func(event map[string]any, seq uint64) {
			event["data"] = map[string]any{"key": "mode", "endpoint": seq % 8, "value": text}
		})
	}},
	{"states", func(ctx context.Context, a attacker) {
		before := url.QueryEscape(time.Now().UTC().Format(time.RFC3339))
		a.ask(ctx, 50, "GET", "/v1/state?value=false&status=failed&available=false&observed_before="+before, "")
	}},
	{"search", func(ctx context.Context, a attacker) {
		a.ask(ctx, 50, "GET", "/v1/events?type=nomatch.*", "")
	}},
	{"past-states", func(ctx context.Context, a attacker) {
		a.ask(ctx, 50, "GET", "/v1/hubs/"+a.hub.ID+"/state", "")
	}},
	{"connections", func(ctx context.Context, a attacker) {
		a.workers(ctx, 400, func() {
			conn, err := net.Dial("tcp", a.s.HTTP)
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET /v1/openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n") // and reads nothing
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			<-ctx.Done()
		})
	}},
	{"bodies", func(ctx context.Context, a attacker) {
		a.ask(ctx, 50, "POST", "/portal/sign-in", "email="+strings.Repeat("x", 1<<20))
	}},
	{"streams", func(ctx context.Context, a attacker) {
		reading := newReaders(a.b)
		defer reading.closeStreams()
		var opening sync.WaitGroup
		defer opening.Wait()
		opening.Go(func() {
			pace := time.NewTicker(25 * time.Millisecond) // within the rate of a key
			defer pace.Stop()
			for range size(a.b, 2500, 4) {
				if _, err := reading.open(a.s.HTTP, "GET /v1/events/stream HTTP/1.1\r\nHost: x\r\n"+
					"Authorization: Bearer "+a.tenant.Key+"\r\n\r\n"); err != nil {
					a.b.Error(err)
				}
				select {
				case <-pace.C:
				case <-ctx.Done():
					return
				}
			}
		})
		a.flood(ctx, func(map[string]any, uint64) {})
	}},
	{"hubs", func(ctx context.Context, a attacker) {
		a.workers(ctx, 50, func() { a.flood(ctx, func(map[string]any, uint64) {}) })
	}},
	{"changes", func(ctx context.Context, a attacker) {
		a.ask(ctx, 50, "PATCH", "/v1/sites/"+a.tenant.Site, `{"name":"?"}`)
	}},
	{"sign-up", func(ctx context.Context, a attacker) {
		a.ask(ctx, 50, "POST", "/portal/sign-in", "email=mallory%2B?@example.com")
	}},
	{"connects", func(ctx context.Context, a attacker) {
		replaced := harness.NewRawHub(a.b, a.s.Service)
		replaced.Enroll()
		again := *replaced
		again.Enroll()
		a.workers(ctx, 20, func() { _ = replaced.TryConnect(replaced.ID) })
	}},
	{"passwords", func(ctx context.Context, a attacker) {
		var tries atomic.Int64
		a.workers(ctx, 20, func() {
			user := nats.UserInfo(fmt.Sprint("user-", tries.Add(1)), "guess")
			if nc, err := nats.Connect(a.s.NATS, user, nats.NoReconnect()); err == nil {
				nc.Close()
				a.b.Error("a guessed password was accepted")
			}
		})
	}},
}

// triedAttacks are the attacks that TestMeasures runs: they have what the others consist of.
const triedAttacks = "channels,search,connections,streams,connects,passwords"

// attacker is an organization that does its worst, with a hub.
type attacker struct {
	b      *bench
	s      *service
	tenant *harness.Tenant
	hub    *harness.RawHub
}

// workers calls do in n goroutines, or in few if nothing is measured, each again and again, until
// ctx ends.
func (a attacker) workers(ctx context.Context, n int, do func()) {
	var all sync.WaitGroup
	for range size(a.b, n, 4) {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
			}
		})
	}
	all.Wait()
}

// ask sends a request again and again, n at a time, and reads the answers. "?" in the body stands
// for a number that is another one each time.
func (a attacker) ask(ctx context.Context, n int, method, path, body string) {
	transport := &http.Transport{MaxIdleConnsPerHost: n}
	defer transport.CloseIdleConnections()
	var mu sync.Mutex
	number := 0
	a.workers(ctx, n, func() {
		mu.Lock()
		number++
		content := strings.Replace(body, "?", fmt.Sprint(number), 1)
		mu.Unlock()
		req, err := http.NewRequestWithContext(ctx, method, a.s.Public()+path, strings.NewReader(content))
		if err != nil {
			a.b.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if strings.HasPrefix(path, "/v1/") {
			req.Header.Set("Authorization", "Bearer "+a.tenant.Key)
			req.Header.Set("Content-Type", "application/json")
		}
		if response, err := transport.RoundTrip(req); err == nil {
			_, _ = io.Copy(io.Discard, response.Body) // an attacker does not mind being cut off
			response.Body.Close()
		}
	})
}

// flood makes the hub send events, each changed, as fast as they are acknowledged.
func (a attacker) flood(ctx context.Context, change func(event map[string]any, seq uint64)) {
	hub := a.s.target(a.b).Online(a.tenant)
	hub.BreaksProtocol() // checking each message would take as long as its way
	defer hub.Disconnect()
	for sent, acked := uint64(0), uint64(0); ctx.Err() == nil; {
		if sent < acked+floodAhead {
			var events []map[string]any
			for range 10 {
				sent++
				event := harness.Numbered(sent)
				change(event, sent)
				events = append(events, event)
			}
			payload, _ := json.Marshal(map[string]any{"log": "log-1", "events": events}) // texts and numbers
			hub.Publish("hub/"+hub.ID+"/events", payload)
			continue
		}
		select {
		case ack := <-hub.Acks:
			acked = ack.Through
		case <-hub.Lost:
			return
		case <-ctx.Done():
		}
	}
}

// innocent is an organization whose operations are measured.
type innocent struct {
	b      *bench
	s      *service
	tenant *harness.Tenant
	hub    *harness.RawHub
	locked *virtualhub.Hub
	feed   *harness.Stream
	mails  *mailserver.Server
	// browser is signed in to the portal as the owner.
	browser http.Client
	sent    uint64
}

var (
	signInPath    = regexp.MustCompile(`/portal/sign-in/[A-Za-z0-9._~-]+`)
	smokeDetected = regexp.MustCompile(`Smoke detected`)
)

func newInnocent(b *bench, s *service, mails *mailserver.Server) *innocent {
	target, tenant := s.target(b), harness.NewTenant(b, s.Service, "Innocent")
	elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	jar, err := cookiejar.New(nil)
	harness.Must(b, err)
	i := &innocent{
		b: b, s: s, tenant: tenant, hub: target.Online(tenant), mails: mails,
		locked: target.VirtualHub(tenant, virtualhub.Config{
			Devices: []virtualhub.DeviceSpec{{Kind: "lock"}},
		}),
		feed:    tenant.Stream("/events/stream?type=channel.observed", ""),
		browser: http.Client{Jar: jar, Transport: &http.Transport{DialContext: elsewhere.DialContext}},
	}
	i.browse("/portal/sign-in", url.Values{"email": {tenant.Owner}})
	i.browse(i.mailed(tenant.Owner, signInPath), url.Values{})
	return i
}

// browse opens a page of the portal as the owner, or submits a form.
func (i *innocent) browse(path string, form url.Values) {
	get := func() (*http.Response, error) { return i.browser.Get(i.s.Public() + path) }
	if form != nil {
		get = func() (*http.Response, error) { return i.browser.PostForm(i.s.Public()+path, form) }
	}
	response, err := get()
	harness.Must(i.b, err)
	defer response.Body.Close()
	if _, err = io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		i.b.Fatalf("%s: got %s, %v", path, response.Status, err)
	}
}

// mailed waits for a mail to an address in which a pattern is, and returns what matches it.
func (i *innocent) mailed(address string, pattern *regexp.Regexp) (found string) {
	streamstest.Eventually(i.b, "a mail", func() bool {
		for _, m := range i.mails.MailsTo(address) {
			subject, text := m.Read(i.b)
			if found = pattern.FindString(subject + "\n" + text); found != "" {
				return true
			}
		}
		return false
	})
	return found
}

// alarm returns how long the mail about smoke takes, in milliseconds: each time in another organization,
// since mails about the same kind at the same site have pauses.
func (i *innocent) alarm() float64 {
	tenant := harness.NewTenant(i.b, i.s.Service, "Mill")
	hub := i.s.target(i.b).VirtualHub(tenant, virtualhub.Config{
		Devices: []virtualhub.DeviceSpec{{Kind: "smoke_alarm", Name: "Landing alarm"}},
	})
	begun := time.Now()
	harness.Must(i.b, hub.Report(1, virtualhub.ChannelRef{Key: "smoke"}, true))
	i.mailed(tenant.Owner, smokeDetected)
	return float64(time.Since(begun).Microseconds()) / 1000
}

// operations does each operation once, and adds how many milliseconds it took. It fails the test if
// one is not answered as without an attack.
func (i *innocent) operations(took map[string][]float64) {
	device := "/hubs/" + i.locked.ID() + "/devices"
	i.sent++
	begun := time.Now()
	add := func(name string) {
		took[name] = append(took[name], float64(time.Since(begun).Microseconds())/1000)
		begun = time.Now()
	}
	i.hub.EventsFrom("log-1", i.sent, i.sent)
	i.hub.WaitAck("log-1", i.sent)
	add("event to ack")
	for !strings.Contains(i.feed.Next(i.b, time.Minute).Data, i.hub.ID) {
	}
	add("event to reader, after the ack")
	i.browse("/portal/"+i.tenant.Org, nil)
	add("portal page")
	for _, op := range []struct {
		name, method, path string
		body               any
		status             int
	}{
		{"live read", "GET", device, nil, 200},
		{
			"command", "POST", device + "/1/commands",
			map[string]any{"key": "lock", "value": i.sent%2 == 0}, 202,
		},
		{"list", "GET", "/hubs", nil, 200},
		{"states", "GET", "/state", nil, 200},
		{"change", "PATCH", "/sites/" + i.tenant.Site, map[string]any{"name": fmt.Sprint(i.sent)}, 200},
	} {
		begun = time.Now()
		i.tenant.Must(op.method, op.path, op.body, op.status)
		add(op.name)
	}
}

// measured is what a measurement of the innocent organization has found.
type measured struct {
	// took is how long each of the operations took, in milliseconds.
	took map[string][]float64
	// memory is the most resident memory of the service in MB, and processors how many processors the
	// service and its database used.
	memory, processors float64
}

// measure does operations for some time, and twice at least.
func (i *innocent) measure(duration time.Duration, mails bool) measured {
	m := measured{took: map[string][]float64{}}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", i.s.pid), []byte("5"), 0); err != nil { // VmHWM
		i.b.Fatal(err)
	}
	usedBefore, begun := cpuOf(i.b, i.s.PIDs()), time.Now()
	pace := time.NewTicker(150 * time.Millisecond) // within the rate of a key
	defer pace.Stop()
	for n := 0; n < 2 || time.Since(begun) < duration; n++ {
		i.operations(m.took)
		if mails && n%mailEvery == 0 {
			m.took["alarm mail"] = append(m.took["alarm mail"], i.alarm())
		}
		<-pace.C
	}
	m.processors = (cpuOf(i.b, i.s.PIDs()) - usedBefore).Seconds() / time.Since(begun).Seconds()
	m.memory = field(i.b, string(read(i.b, fmt.Sprintf("/proc/%d/status", i.s.pid))), "VmHWM:") / 1024
	return m
}

// mailEvery is how many other operations there are to one mail about an alarm.
const mailEvery = 20

// measureFairness measures one organization alone, during the attacks of another, after them, and while
// another process uses as much of the processors as the attack did.
func measureFairness(b *bench) {
	mails := mailserver.Start(b, mailserver.Options{})
	s := startService(b, "--log-level", "warn", "--smtp-url", "smtp://"+mails.Address, "--rate", "50",
		"--burst", "100")
	one := newInnocent(b, s, mails)
	chosen := strings.Split(cmp.Or(*attacksFlag, size(b, "", triedAttacks)), ",")
	for n, attack := range attacks {
		if chosen[0] != "" && !slices.Contains(chosen, attack.name) {
			continue
		}
		f := fairness{attack: attack.name, rounds: map[string][]fairRound{}}
		for range size(b, *attackRoundsFlag, 1) {
			f.round(b, one, b.full || n == 0)
		}
		f.add(b.report)
		if b.full {
			b.Logf("%s", &f)
		}
	}
}

// fairness is what the rounds of an attack have shown, by the operation.
type fairness struct {
	attack                            string
	memory, attackers, beside, before []float64
	rounds                            map[string][]fairRound
}

// fairRound has what an operation took in one round, in milliseconds: alone, beside a process that uses the
// processors as the attack did, during the attack, and after it.
type fairRound struct{ alone, beside, during, after []float64 }

// promised is how long an operation may take during an attack: twice what it takes without, and what the
// attack's use of the processors adds.
func (r fairRound) promised(share float64) float64 {
	alone := percentile(r.alone, share)
	return 2*alone + max(0, percentile(r.beside, share)-alone)
}

// round measures once. Mails take seconds, so a tiny round has them during the attack only.
func (f *fairness) round(b *bench, one *innocent, mails bool) {
	lasts := size(b, *attackFlag, 0)
	b.Logf("%s: attack %s", time.Now().Format(time.TimeOnly), f.attack)
	before := one.measure(lasts, b.full)
	attacker := startBare(b, roleAttack, attackConfig{harness.Binary(b), one.s.Service, f.attack, b.full})
	profiled := b.profile(one.s.process, "attack "+f.attack, lasts, true)
	used, begun := attacker.cpu(b), time.Now()
	during := one.measure(lasts, mails)
	attackers := (attacker.cpu(b) - used).Seconds() / time.Since(begun).Seconds()
	profiled()
	attacker.stop()
	harness.Elapse(min(lasts, 30*time.Second)) // then everything must be as before
	after := one.measure(lasts, b.full)
	burner := startBare(b, roleBurner, attackers+max(0, during.processors-before.processors))
	beside := one.measure(lasts, b.full)
	burner.stop()
	for name := range before.took {
		f.rounds[name] = append(f.rounds[name], fairRound{
			before.took[name], beside.took[name], during.took[name], after.took[name],
		})
	}
	f.memory = append(f.memory, during.memory)
	f.attackers = append(f.attackers, attackers)
	f.before, f.beside = append(f.before, before.processors), append(f.beside, during.processors)
}

// add reports an attack's rows.
func (f *fairness) add(to *report) {
	for _, name := range slices.Sorted(maps.Keys(f.rounds)) {
		for what, share := range map[string]float64{"p50": 0.5, "p99": 0.99} {
			meanwhile := row{
				Measure: fmt.Sprintf("%s, attack %s, %s", name, f.attack, what), Unit: "ms", Aim: atMost(1),
			}
			later := row{
				Measure: fmt.Sprintf("%s, after attack %s, %s", name, f.attack, what), Unit: "ms", Aim: atMost(2),
			}
			for _, r := range f.rounds[name] {
				meanwhile.Values = append(meanwhile.Values, percentile(r.during, share))
				meanwhile.Limits = append(meanwhile.Limits, r.promised(share))
				later.Values = append(later.Values, percentile(r.after, share))
				later.Limits = append(later.Limits, percentile(r.alone, share))
			}
			to.add(meanwhile, later)
		}
	}
	to.add(row{
		Measure: "memory, attack " + f.attack, Unit: "MB", Values: f.memory, Limits: []float64{1000}, Aim: atMost(1),
		Note: fmt.Sprintf("the service and its database used %.2f processors, %.2f before; the attacker %.2f",
			median(f.beside), median(f.before), median(f.attackers)),
	})
}

// String returns a table: how long each operation took alone, beside another process that uses the
// processors, and during the attack.
func (f *fairness) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "attack %s: %.0f MB; processors: %.2f of the attacker, %.2f of the service, %.2f without\n",
		f.attack, median(f.memory), median(f.attackers), median(f.beside), median(f.before))
	for _, name := range slices.Sorted(maps.Keys(f.rounds)) {
		fmt.Fprintf(&text, "%-32s", name)
		for _, share := range []float64{0.5, 0.99} {
			var of [4][]float64
			for _, r := range f.rounds[name] {
				for n, took := range [][]float64{r.alone, r.beside, r.during, r.after} {
					of[n] = append(of[n], percentile(took, share))
				}
			}
			a, b, c, after := median(of[0]), median(of[1]), median(of[2]), median(of[3])
			fmt.Fprintf(&text, "  p%.0f: alone %.1f, beside %.1f, attack %.1f, after %.1f, ratio %.2f", 100*share,
				a, b, c, after, c/(2*a+max(0, b-a)))
		}
		text.WriteString("\n")
	}
	return text.String()
}

func (s *service) target(b *bench) *harness.Target { return harness.TargetOf(b, s.Service) }
