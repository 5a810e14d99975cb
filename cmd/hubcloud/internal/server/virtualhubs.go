package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams"
)

const (
	// virtualHubsPerReplica bounds the virtual hubs that one replica runs, which are as much work as
	// other hubs. Those beyond it are offline.
	virtualHubsPerReplica = 500
	// virtualHubPoll is how often a replica looks for virtual hubs whose change it missed, and
	// virtualHubPause the pause before a hub that ended is started again.
	virtualHubPoll, virtualHubPause = time.Minute, 10 * time.Second
	// virtualInstaller is how long after the opening of a window somebody at the virtual hub acts.
	virtualInstaller = 5 * time.Second
)

// virtualHubs are the virtual hubs of organizations that this replica runs, each as a hub elsewhere
// would run: it enrols, connects over MQTT, and keeps its devices and events in a folder of the data
// directory. The replicas with the role api divide them, as they divide webhooks; a hub that another
// replica takes over begins as after a factory reset.
type virtualHubs struct {
	mu      sync.Mutex
	running int
	// changed is closed when an organization gets or loses a virtual hub; nil if nobody waits.
	changed chan struct{}
}

// change wakes those who wait for changes, if the hub is a virtual one.
func (v *virtualHubs) change(hub domain.HubID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if hub.Virtual() && v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}

// changes returns a channel that the next change closes.
func (v *virtualHubs) changes() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.changed
}

// start takes the place of one more running hub, and reports whether there is one.
func (v *virtualHubs) start() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.running >= virtualHubsPerReplica {
		return false
	}
	v.running++
	return true
}

func (v *virtualHubs) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running--
}

// VirtualSecret returns the enrolment secret of a virtual hub, the same on every replica.
func (s *hubLink) VirtualSecret(hub domain.HubID) string {
	key, err := s.authority.DeriveKey("enrolment secrets of virtual hubs")
	if err != nil { // an authority that started can derive keys
		panic(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(hub))
	return domain.NewEnrolmentSecret([32]byte(mac.Sum(nil)))
}

// serveVirtualHubs runs the virtual hubs of a part until ctx ends.
func (s *web) serveVirtualHubs(ctx context.Context, part int) error {
	var all sync.WaitGroup
	defer all.Wait()
	stops := map[domain.HubID]func(){}
	for {
		changed := s.virtualHubs.changes()
		owned := map[domain.HubID]bool{}
		for _, id := range s.access.Hubs() {
			if !id.Virtual() || streams.PartOf(string(id), taskParts) != part ||
				id != domain.VirtualHubID(s.orgOf(id)) {
				continue
			}
			if owned[id] = true; stops[id] == nil && s.virtualHubs.start() {
				hubCtx, stop := context.WithCancel(ctx)
				ended := make(chan struct{})
				stops[id] = func() { stop(); <-ended }
				all.Go(func() {
					defer close(ended)
					defer s.virtualHubs.end()
					s.runVirtualHub(hubCtx, id)
				})
			}
		}
		for id, stop := range stops {
			if !owned[id] { // released: the next one is a new hub
				stop()
				delete(stops, id)
				if err := os.RemoveAll(s.virtualDir(id)); err != nil {
					s.logger.Warn("virtual hub not removed", "hub_id", id, "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(virtualHubPoll):
		}
	}
}

func (s *web) virtualDir(id domain.HubID) string { return s.dir.Path("virtualhubs", string(id)) }

// VirtualHub returns the configuration of a virtual hub that enrols with VirtualSecret. This
// replica issues its certificate, and it needs the role api.
func (s *web) VirtualHub(id domain.HubID) virtualhub.Config {
	return virtualhub.Config{
		Config: hub.Config{
			EnrollURL: s.bound.PublicURL, Serial: id.Serial(), Secret: s.VirtualSecret(id),
			Dir: s.virtualDir(id), HTTPClient: &http.Client{Transport: ownAPI{s.api}}, Dial: s.dialOwnBroker,
			Logger: s.logger.With("component", "virtualhub"),
		},
		Installer: virtualInstaller,
	}
}

// runVirtualHub runs a virtual hub until ctx ends.
func (s *web) runVirtualHub(ctx context.Context, id domain.HubID) {
	cfg := s.VirtualHub(id)
	for {
		h, err := virtualhub.New(cfg)
		if err == nil {
			err = h.Run(ctx)
			if closeErr := h.Close(); err == nil {
				err = closeErr
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.logger.Warn("virtual hub ended; starting it again", "hub_id", id, "error", err)
		if !streams.Sleep(ctx, virtualHubPause) {
			return
		}
	}
}

// dialOwnBroker connects to this replica's broker in place of its public address, which may not be
// reachable from here; with an external broker to that address.
func (s *web) dialOwnBroker(ctx context.Context, network, address string) (net.Conn, error) {
	if s.broker != nil {
		address = s.bound.MQTT
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// ownAPI sends requests to this replica's API without a connection: its public address may not be
// reachable from here, or lead to another replica.
type ownAPI struct{ handler http.Handler }

// RoundTrip returns the handler's answer.
func (t ownAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	request, answer := r.Clone(r.Context()), &bufferedAnswer{header: http.Header{}, status: http.StatusOK}
	request.RemoteAddr, request.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	t.handler.ServeHTTP(answer, request)
	return &http.Response{
		StatusCode: answer.status, Status: http.StatusText(answer.status), Header: answer.header,
		Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
	}, nil
}

// bufferedAnswer is an answer in memory.
type bufferedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the answer's header.
func (a *bufferedAnswer) Header() http.Header { return a.header }

// WriteHeader sets the status.
func (a *bufferedAnswer) WriteHeader(status int) { a.status = status }

// Write adds to the body.
func (a *bufferedAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }
