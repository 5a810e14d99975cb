package identity

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/shares"
)

const (
	// calloutSubject is the subject of the broker's requests, in the account CLOUD. calloutQueue is
	// the queue group of the replicas, so that each request is answered by one of them.
	calloutSubject = "$SYS.REQ.USER.AUTH"
	calloutQueue   = "identity"
	// calloutWaiting is the most requests that may wait in a replica. All hubs may reconnect at
	// once; the broker times out requests beyond the limit, and their hubs try again.
	calloutWaiting = 16 << 10
	// calloutsPerProcessor is the number of concurrent requests per processor. Each reads the
	// directory, which waits for the broker, and makes two signatures, which use the processor.
	calloutsPerProcessor = 4
	// calloutTimeout limits the read of the directory for one request.
	calloutTimeout = 4 * time.Second
	// maxLogin is the most bytes of a user name and password together.
	maxLogin = 1 << 10
	// calloutFlush limits how long Run waits at its end for a broker that does not respond.
	calloutFlush = time.Second
)

// CalloutConfig configures a Callout. Conns, Credentials and Directory are required.
type CalloutConfig struct {
	// Conns are the service's connections to the broker.
	Conns *streams.Conns `check:"set"`
	// Credentials have the key that signs the responses and the number of shards.
	Credentials streams.Credentials
	// Directory has the hubs and their certificates.
	Directory Directory `check:"set"`
	// Taps checks the logins of taps. Defaults to none: only hubs are admitted.
	Taps Taps
	// HubConnections limits the rate of one hub's connections, as far as this process answers for
	// them. Each connection adds two events to the hub's log. Defaults to no limit.
	HubConnections domain.HubLimit
	// Confirm returns nil if this process is not cut off from the majority of the cluster. A
	// process that is cut off could admit hubs that have been revoked since. Defaults to no
	// check.
	Confirm func(ctx context.Context) error
	// Rejections knows the clients that were rejected lately. Defaults to ones of its own.
	Rejections *Rejections
	// Shares reports the limits; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger receives a line for each rejection, at most one a minute for the same hub and reason.
	// Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics. Defaults to none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c CalloutConfig) WithDefaults() CalloutConfig {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rejections == nil {
		c.Rejections = NewRejections(c.Shares, c.Now)
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Taps checks the logins of taps.
type Taps interface {
	// Admit returns the account of the tap's user, or "" if there is no such user or the password
	// is wrong.
	Admit(ctx context.Context, user, password string) (streams.Account, error)
}

// Callout answers the broker's auth callout: it decides whether a connection is admitted as a hub,
// as a tap, or not at all. The broker calls it for every connection but the service's own.
type Callout struct {
	cfg        CalloutConfig
	issuer     nkeys.KeyPair
	results    *prometheus.CounterVec
	seconds    prometheus.Histogram
	rejections *rejectionLog
	connects   *shares.Rate[domain.HubID]
}

// NewCallout returns a Callout, which answers requests while Run runs.
func NewCallout(cfg CalloutConfig) (*Callout, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("auth callout", cfg); err != nil {
		return nil, err
	}
	issuer, err := nkeys.FromSeed([]byte(cfg.Credentials.IssuerSeed))
	if err != nil {
		return nil, fmt.Errorf("auth callout: credentials: issuer_seed: %w", err)
	}
	c := &Callout{
		cfg: cfg, issuer: issuer, rejections: newRejectionLog(cfg.Logger, cfg.Now),
		connects: shares.NewRate[domain.HubID](cfg.Shares, shares.RateConfig{
			Name:      "connections_of_hubs",
			PerSecond: float64(cfg.HubConnections.PerMinute) / 60, Burst: cfg.HubConnections.Burst,
		}, cfg.Now()),
		results: newCallouts(cfg.Metrics), seconds: newCalloutDuration(cfg.Metrics),
	}
	return c, nil
}

// Run answers requests until ctx ends, then those that have already arrived. It returns ctx's
// error.
func (c *Callout) Run(ctx context.Context) error {
	requests := make(chan *nats.Msg, calloutWaiting)
	sub, err := c.cfg.Conns.Callout.ChanQueueSubscribe(calloutSubject, calloutQueue, requests)
	if err != nil {
		return fmt.Errorf("auth callout: %w", err)
	}
	var workers errgroup.Group
	for range calloutsPerProcessor * runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			for msg := range requests {
				c.serve(msg)
			}
			return nil
		})
	}
	<-ctx.Done()
	drain(sub)
	close(requests)
	_ = workers.Wait() // the workers return no errors
	// Send the last responses before the caller stops the broker. Without a broker this fails.
	_ = c.cfg.Conns.Callout.FlushTimeout(calloutFlush)
	return ctx.Err()
}

// drain ends a subscription. Afterwards its channel has all messages that the broker sent before,
// unless the connection is lost, and gets no more.
func drain(sub *nats.Subscription) {
	drained := make(chan struct{})
	closed := sync.OnceFunc(func() { close(drained) }) // nats.go may call the handler twice
	sub.SetClosedHandler(func(string) { closed() })
	if err := sub.Drain(); err == nil {
		select {
		case <-drained:
			return
		case <-time.After(calloutFlush):
		}
	}
	streams.Unsubscribe(sub)
}

// serve answers one request. The broker itself rejects a connection whose request is not answered,
// after five seconds: that is what a client gets that is rejected too often, so it pauses.
func (c *Callout) serve(msg *nats.Msg) {
	began := time.Now()
	request, err := jwt.DecodeAuthorizationRequestClaims(string(msg.Data))
	if err != nil {
		c.cfg.Logger.Error("auth callout request unreadable", "error", err)
		return
	}
	if request.Expires != 0 && request.Expires < c.cfg.Now().Unix() {
		// The broker has already closed the connection. Skipping it shortens the wait of the
		// others.
		c.count(request, reject(reasonTooLate, nil))
		return
	}
	response := jwt.NewAuthorizationResponseClaims(request.UserNkey)
	response.Audience = request.Server.ID
	user, err := c.admitWithin(request)
	c.count(request, err)
	var rejected *rejection
	if errors.As(err, &rejected) && rejected.silent {
		return
	}
	if err == nil {
		response.Jwt, err = user.Encode(c.issuer)
	}
	if err != nil {
		response.Error = "refused" // the reason is only logged; the client does not get it
	}
	text, err := response.Encode(c.issuer)
	if err == nil {
		err = msg.Respond([]byte(text))
	}
	if err != nil {
		c.cfg.Logger.Error("auth callout response failed", "error", err)
	}
	c.seconds.Observe(time.Since(began).Seconds())
}

// admitWithin is admit for a client that was not rejected too often lately. One that repeats a
// certificate that was replaced, or wrong passwords, costs no read of the directory then.
func (c *Callout) admitWithin(
	request *jwt.AuthorizationRequestClaims,
) (*jwt.UserClaims, error) {
	if len(request.ConnectOptions.Username)+len(request.ConnectOptions.Password) > maxLogin {
		return nil, reject(reasonTooLarge, nil)
	}
	certificate, _ := shownCertificate(request) // admit returns the error
	client := clientOf(request, certificate)
	if c.cfg.Rejections.tooMany(client) {
		return nil, &rejection{reason: reasonTooOften, silent: true}
	}
	user, err := c.admit(request)
	var rejected *rejection
	if errors.As(err, &rejected) && rejected.reason.lasts() {
		rejected.silent = c.cfg.Rejections.add(client, request.ClientInformation.Host)
	}
	return user, err
}

// admit decides about one connection. It returns the permissions of its user, or a *rejection.
func (c *Callout) admit(request *jwt.AuthorizationRequestClaims) (*jwt.UserClaims, error) {
	if request.ClientInformation.Type != clientTypeMQTT {
		return c.admitTap(request)
	}
	certificate, err := shownCertificate(request)
	if err != nil {
		return nil, reject(reasonNoCertificate, err)
	}
	hub, ok := domain.ParseHubID(certificate.Subject.CommonName)
	if !ok || string(hub) != request.ClientInformation.MQTT {
		return nil, reject(reasonOtherName, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), calloutTimeout)
	defer cancel()
	state, _, err := c.cfg.Directory.Hub(ctx, hub)
	if err != nil {
		return nil, reject(reasonNoDirectory, err)
	}
	if err := c.confirm(ctx); err != nil {
		return nil, reject(reasonNoDirectory, err)
	}
	if !state.Registered {
		return nil, reject(reasonUnknownHub, nil)
	}
	if state.Blocked {
		return nil, reject(reasonBlocked, nil)
	}
	if state.Certificate != fingerprint(certificate.Raw) {
		return nil, reject(reasonNotCurrent, nil)
	}
	// Last, so that only clients with the hub's certificate count against its limit.
	if !c.connects.Take(hub, c.cfg.Now()).Granted {
		return nil, reject(reasonTooOften, nil)
	}
	return c.user(request.UserNkey, hub, certificate.NotAfter), nil
}

func (c *Callout) confirm(ctx context.Context) error {
	if c.cfg.Confirm == nil {
		return nil
	}
	return c.cfg.Confirm(ctx)
}

// clientTypeMQTT is the broker's name for MQTT in requests.
const clientTypeMQTT = "mqtt"

// admitTap decides about a connection that does not use MQTT. It admits users of taps, with the
// permissions of streams.TapPermissions.
func (c *Callout) admitTap(request *jwt.AuthorizationRequestClaims) (*jwt.UserClaims, error) {
	name := request.ConnectOptions.Username
	if c.cfg.Taps == nil || name == "" {
		return nil, reject(reasonNotMQTT, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), calloutTimeout)
	defer cancel()
	account, err := c.cfg.Taps.Admit(ctx, name, request.ConnectOptions.Password)
	if err != nil {
		return nil, reject(reasonNoTaps, err)
	}
	if err := c.confirm(ctx); err != nil {
		return nil, reject(reasonNoTaps, err)
	}
	if account == "" {
		return nil, reject(reasonUnknownTap, nil)
	}
	user := jwt.NewUserClaims(request.UserNkey)
	user.Name = name
	user.Audience = string(account)
	user.AllowedConnectionTypes.Add(jwt.ConnectionTypeStandard)
	permissions := streams.TapPermissions(name)
	user.Pub.Allow.Add(permissions.Publish...)
	user.Pub.Deny.Add(permissions.Deny...)
	user.Sub.Allow.Add(permissions.Subscribe...)
	return user, nil
}

// shownCertificate returns the client's certificate in a request. The broker has verified it.
func shownCertificate(request *jwt.AuthorizationRequestClaims) (*x509.Certificate, error) {
	if request.TLS == nil || len(request.TLS.VerifiedChains) == 0 || len(request.TLS.VerifiedChains[0]) == 0 {
		return nil, errors.New("no verified certificate")
	}
	chain, err := parseCertificates([]byte(request.TLS.VerifiedChains[0][0]))
	if err != nil {
		return nil, err
	}
	return chain[0], nil
}

// user returns the permissions of a hub: its own topics of the hub protocol, in the account of its
// shard, over MQTT, until its certificate expires. For a subscription at QoS 1 the broker adds one
// to an internal subject below $MQTT.sub., which MQTT clients cannot name.
func (c *Callout) user(key string, hub domain.HubID, until time.Time) *jwt.UserClaims {
	user := jwt.NewUserClaims(key)
	user.Name = string(hub)
	user.Audience = string(streams.ShardAccount(streams.ShardOf(hub, c.cfg.Credentials.Shards)))
	user.Expires = until.Unix()
	user.AllowedConnectionTypes.Add(jwt.ConnectionTypeMqtt)
	user.Pub.Allow.Add(
		streams.HelloSubject(hub), streams.EventsSubject(hub), streams.ResponseFilter(hub),
	)
	user.Sub.Allow.Add(streams.AckSubject(hub), streams.RequestSubject(hub), "$MQTT.sub.*")
	return user
}

func (c *Callout) count(request *jwt.AuthorizationRequestClaims, err error) {
	var rejected *rejection
	if !errors.As(err, &rejected) {
		c.results.WithLabelValues(resultAccepted).Inc()
		return
	}
	c.results.WithLabelValues(string(rejected.reason)).Inc()
	c.rejections.add(request, rejected)
}
