package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/test/harness"
)

type callSize struct {
	calls, rounds int
}

// pause between two calls, so that each finds an idle service
const pause = time.Millisecond

// measureCalls compares the time of a live call and of a command, from the API's client to the hub
// and back, with a bare round trip to the hub. A command takes a live call's time and two synced
// writes one after the other: its reservation together with its record, and its answer.
func measureCalls(b *bench) {
	n := size(b, callSize{400, 5}, callSize{3, 1})
	s := startService(b, "--log-level", "warn")
	h := s.hubs(1)[0]
	h.answer = h.answerDevice
	release := keep(b, []*hub{h})
	defer release()

	ca := newAuthority(b)
	broker := ca.startBroker(bareBrokerConfig{Dir: b.TempDir(), Shards: defaultShards})
	echo := ca.hubs(broker, defaultShards, 1)[0]
	harness.Must(b, echo.connect())
	echo.answer = echo.answerDevice
	releaseEcho := keep(b, []*hub{echo})
	defer releaseEcho()

	client, err := dialPages(s.Service.HTTP)
	harness.Must(b, err)
	defer client.conn.Close()
	device := "/hubs/" + h.ID + "/devices/3"
	commands := 0
	syncs := "a command waits for two syncs, one after the other; " + syncTimes(b, n.calls)
	for _, call := range []struct {
		name    string
		most    float64
		note    string
		request func() []byte
	}{
		{"live call", 3, "", func() []byte { return []byte(s.get(device)) }},
		{"command", 5, syncs, func() []byte {
			commands++
			body := fmt.Sprintf(`{"key":"lock","value":%t}`, commands%2 == 0)
			return []byte(s.post(device+"/commands", body, fmt.Sprintf("bench-%d", commands)))
		}},
	} {
		middle := row{
			Measure: call.name + ", median", Unit: "µs", Aim: atMost(call.most), Note: call.note,
		}
		tail := row{Measure: call.name + ", p99", Unit: "µs", Aim: atMost(call.most)}
		for round := range n.rounds {
			done := b.profile(
				s.process, call.name, time.Duration(n.calls)*2*time.Millisecond, round == 0,
			)
			took := make([]float64, 0, n.calls)
			for range n.calls {
				request := call.request()
				began := time.Now()
				harness.Must(b, client.read(request))
				took = append(took, float64(time.Since(began)))
				harness.Elapse(pause)
			}
			done()
			middle.Values = append(middle.Values, median(took)/1e3)
			tail.Values = append(tail.Values, percentile(took, 0.99)/1e3)

			var trips []float64
			broker.do("/call", callCommand{Hub: echo.ID, Count: n.calls}, &trips)
			middle.Limits = append(middle.Limits, median(trips)/1e3)
			tail.Limits = append(tail.Limits, percentile(trips, 0.99)/1e3)
		}
		b.report.add(middle, tail)
	}
}

// syncTimes describes how long this disk takes to sync a short write.
func syncTimes(b *bench, count int) string {
	file, err := os.Create(filepath.Join(b.TempDir(), "synced"))
	harness.Must(b, err)
	defer file.Close()
	took := make([]float64, 0, count)
	for range count {
		if _, err := file.Write(make([]byte, 600)); err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		harness.Must(b, file.Sync())
		took = append(took, float64(time.Since(began))/1e3)
		harness.Elapse(pause)
	}
	return fmt.Sprintf(
		"this disk takes %s µs for one, p99 %s", figure(median(took)), figure(percentile(took, 0.99)),
	)
}

// post returns the bytes of a request with a JSON body and an idempotency key.
func (s *service) post(path, body, key string) string {
	return fmt.Sprintf(
		"POST /v1%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Idempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
		path,
		s.Service.HTTP,
		s.Tenant.Key,
		key,
		len(body),
		body,
	)
}

// answerDevice answers any request like a hub with one lock.
func (h *hub) answerDevice(request []byte) ([]byte, error) {
	var asked struct {
		ID, Token, Method string
		Params            struct{ Value json.RawMessage }
	}
	if err := json.Unmarshal(request, &asked); err != nil {
		return nil, err
	}
	const channel = `{"key":"lock","endpoint":0,"kind":"lock","unit":null,"readable":true,"writable":true,"capabilities":{},"available":true,` +
		`"value":true,"observed_at":"2026-01-02T03:04:05.123456Z","desired":%s,"desired_at":%s,"status":%q}`
	var result string
	switch asked.Method {
	case "channels.command":
		result = fmt.Sprintf(
			`{"channel":`+channel+`}`, asked.Params.Value, `"2026-01-02T03:04:05.123456Z"`,
			"pending",
		)
	default:
		result = fmt.Sprintf(
			`{"device":{"id":3,"name":"Front door","manufacturer":"Acme","model":"L1","channels":[`+channel+`]}}`,
			"null", "null", "synchronized",
		)
	}
	return mqttPublish(
		"hub/"+h.ID+"/response/"+asked.Token,
		fmt.Appendf(nil, `{"id":%q,"result":%s}`, asked.ID, result),
	), nil
}

// callCommand makes the bare broker's process send requests to a hub, one after the other.
type callCommand struct {
	Hub   string
	Count int
}

// call returns the duration of each round trip.
func (b *bareBroker) call(c callCommand) ([]float64, error) {
	nc := b.shard(c.Hub)
	hub := domain.HubID(c.Hub)
	answers := make(chan *nats.Msg, 1)
	sub, err := nc.ChanSubscribe(streams.ResponseSubject(hub, ">"), answers)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	request := []byte(
		`{"id":"01JZZZZZZZZZZZZZZZZZZZZZZZ","token":"k3.17","method":"devices.get","params":{"device_id":3},"timeout_ms":10000}`,
	)
	var took []float64
	for range c.Count {
		began := time.Now()
		if err := nc.Publish(streams.RequestSubject(hub), request); err != nil {
			return nil, err
		}
		select {
		case <-answers:
		case <-time.After(20 * time.Second):
			return nil, fmt.Errorf("hub %s does not answer", c.Hub)
		}
		took = append(took, float64(time.Since(began)))
		harness.Elapse(pause)
	}
	return took, nil
}
