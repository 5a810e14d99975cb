package bench

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// atOnce is how many hubs are created concurrently: more would only wait for the processors.
const atOnce = 24

// service is a running service with an organization.
type service struct {
	*harness.Service
	*harness.Tenant
	process
	t testing.TB
}

// startService starts the service with its default settings, except for rate limits, and
// with the given flags.
func startService(t testing.TB, flags ...string) *service {
	t.Helper()
	s := &service{
		t: t,
		Service: harness.Start(
			t, append([]string{"--rate", "1000000", "--burst", "1000000"}, flags...)...),
	}
	s.Tenant = harness.NewTenant(t, s.Service, "Bench")
	s.process = process{pid: s.PID(), admin: s.Admin}
	return s
}

// restart stops the service with SIGTERM and starts it again on the same data.
func (s *service) restart() {
	s.t.Helper()
	s.Stop()
	s.Begin()
	s.process.pid = s.PID()
}

// hubs registers, enrols, connects and adds hubs, whose hellos are acknowledged. They stay
// connected, without a goroutine that reads.
func (s *service) hubs(count int) []*hub {
	s.t.Helper()
	made := s.register(count)
	s.each(made, s.enrol)
	s.each(made, (*hub).connect)
	s.each(made, (*hub).hello)
	s.each(made, s.adopt)
	return made
}

// each calls do for every hub, atOnce concurrently.
func (s *service) each(hubs []*hub, do func(*hub) error) {
	s.t.Helper()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, h := range hubs {
		group.Go(func() error { return do(h) })
	}
	if err := group.Wait(); err != nil {
		s.t.Fatalf("%v\nlast log lines of the service:\n%s", err, s.Log())
	}
}

func (s *service) register(count int) []*hub {
	s.t.Helper()
	const most = 1000 // of one command, which has a timeout of a minute
	var made []*hub
	for len(made) < count {
		some := min(most, count-len(made))
		for _, line := range s.CLI(
			"inventory", "generate", "--count", strconv.Itoa(some), "--prefix", "bench",
		) {
			made = append(
				made,
				&hub{
					ID:     line["hub_id"].(string),
					Serial: line["serial"].(string),
					Secret: line["secret"].(string),
				},
			)
		}
	}
	return made
}

func (s *service) enrol(h *hub) error {
	key, csr, err := newKey()
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{
		"serial": h.Serial, "secret": h.Secret,
		"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})),
	})
	if err != nil {
		return err
	}
	response, err := s.Tenant.HTTP.Post(
		"http://"+s.Service.HTTP+"/link/v1/certificates", "application/json", bytes.NewReader(body),
	)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct{ Certificate, CA, Broker string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil ||
		response.StatusCode != http.StatusCreated {
		return fmt.Errorf("enrol %s: status %d: %w", h.ID, response.StatusCode, err)
	}
	block, _ := pem.Decode([]byte(answer.Certificate))
	if block == nil {
		return fmt.Errorf("enrol %s: no certificate", h.ID)
	}
	h.broker = strings.TrimPrefix(answer.Broker, "mqtts://")
	h.tls, err = clientTLS([]byte(answer.CA), block.Bytes, key)
	return err
}

// clientTLS is the TLS configuration of a hub.
func clientTLS(ca, certificate []byte, key *ecdsa.PrivateKey) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no certificate authority in %.100q", ca)
	}
	return &tls.Config{
		RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
	}, nil
}

// adopt adds a hub to the organization's site, as soon as the service knows that it is connected.
func (s *service) adopt(h *hub) error {
	var answer harness.Answer
	var err error
	streamstest.Poll(20*time.Second, func() bool {
		answer, err = s.Do(
			http.MethodPost, "/hubs", map[string]string{"serial": h.Serial, "site_id": s.Site},
		)
		return err != nil || answer.ErrorType() != "hub_not_addable"
	})
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("add %s: %d %s", h.ID, answer.Status, answer.Body)
	}
	return err
}

// emit sends messages with the given number of events each and waits until they are acknowledged.
func (h *hub) emit(messages, events int) error {
	m := newEventsMessage(h, events)
	for range messages {
		if err := m.send(h); err != nil {
			return err
		}
		if err := h.acknowledged(); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged waits until all sent events are acknowledged.
func (h *hub) acknowledged() error {
	for {
		through, err := h.ack()
		if err != nil || through == h.next-1 {
			return err
		}
	}
}

// keep keeps hubs connected in the background until release is called.
func keep(t testing.TB, hubs []*hub) (release func()) {
	stop := make(chan struct{})
	var staying sync.WaitGroup
	for _, h := range hubs {
		staying.Go(func() {
			if err := h.stay(stop); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		close(stop)
		staying.Wait()
	}
}
