package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
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
					"Authorization: Bearer "+a.tenant.Key+"\r\n\r\n", false); err != nil {
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
	if err != nil {
		b.Fatal(err)
	}
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
	if err != nil {
		i.b.Fatal(err)
	}
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
	if err := hub.Report(1, virtualhub.ChannelRef{Key: "smoke"}, true); err != nil {
		i.b.Fatal(err)
	}
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

// measure does operations for some time, and twice at least. It returns how long each took, the most memory
// of the service in MB, and how many processors it used.
func (i *innocent) measure(duration time.Duration, mails bool) (took map[string][]float64, memory, processors float64) {
	took = map[string][]float64{}
	usedBefore, begun := i.s.process.cpu(i.b), time.Now()
	pace := time.NewTicker(150 * time.Millisecond) // within the rate of a key
	defer pace.Stop()
	for n := 0; n < 2 || time.Since(begun) < duration; n++ {
		i.operations(took)
		if mails && n%mailEvery == 0 {
			took["alarm mail"] = append(took["alarm mail"], i.alarm())
		}
		memory = max(memory, field(i.b, string(read(i.b, fmt.Sprintf("/proc/%d/status", i.s.process.pid))), "VmRSS:"))
		<-pace.C
	}
	return took, memory / 1024, (i.s.process.cpu(i.b) - usedBefore).Seconds() / time.Since(begun).Seconds()
}

// mailEvery is how many other operations there are to one mail about an alarm.
const mailEvery = 20

// measureFairness measures one organization before, during and after the attacks of another.
func measureFairness(b *bench) {
	mails := mailserver.Start(b, mailserver.Options{})
	s := startService(b, "--log-level", "warn", "--smtp-url", "smtp://"+mails.Address, "--rate", "50",
		"--burst", "100")
	one, tenant := newInnocent(b, s, mails), harness.NewTenant(b, s.Service, "Attacker")
	a := attacker{b, s, tenant, s.target(b).Online(tenant)}
	lasts := size(b, *attackFlag, 0)
	for n, attack := range attacks {
		if *attacksFlag != "" && !slices.Contains(strings.Split(*attacksFlag, ","), attack.name) {
			continue
		}
		b.Logf("%s: attack %s", time.Now().Format(time.TimeOnly), attack.name)
		mailed := b.full || n == 0 // each takes seconds
		before, _, usual := one.measure(min(lasts, time.Minute), mailed)
		ctx, end := context.WithCancel(b.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); attack.run(ctx, a) }()
		profiled := b.profile(s.process, "attack "+attack.name, lasts, true)
		during, memory, used := one.measure(lasts, mailed)
		profiled()
		end()
		<-ended
		harness.Elapse(min(lasts, 30*time.Second)) // then everything must be as before
		after, _, _ := one.measure(min(lasts, time.Minute), mailed)
		for name := range before {
			for _, part := range []struct {
				name string
				took map[string][]float64
			}{{"meanwhile", during}, {"afterwards", after}} {
				row := func(what string, share float64) {
					b.report.add(row{
						Measure: fmt.Sprintf("%s, attack %s, %s, %s", name, attack.name, part.name, what),
						Unit:    "ms", Values: []float64{percentile(part.took[name], share)},
						Limits: []float64{percentile(before[name], share)}, Aim: atMost(2),
					})
				}
				row("p50", 0.5)
				row("p99", 0.99)
			}
		}
		b.report.add(row{
			Measure: "memory, attack " + attack.name, Unit: "MB", Values: []float64{memory},
			Limits: []float64{1000}, Aim: atMost(1),
			Note: fmt.Sprintf("the service used %.2f processors, and %.2f before", used, usual),
		})
	}
}

func (s *service) target(b *bench) *harness.Target { return harness.TargetOf(b, s.Service) }
