package identity

import (
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
)

const (
	// calloutSubject is where a broker asks about a connection, in the account CLOUD; calloutQueue
	// lets one replica answer each question.
	calloutSubject = "$SYS.REQ.USER.AUTH"
	calloutQueue   = "identity"
	// calloutWaiting is how many questions may wait in a replica. All hubs of an installation may
	// come back at once; those beyond it are refused by the broker in time, and come again.
	calloutWaiting = 16 << 10
	// calloutsPerProcessor: an answer is a read of the directory, which waits for the broker, and
	// two signatures, which do not.
	calloutsPerProcessor = 4
	// calloutTimeout bounds the read of the directory for one question.
	calloutTimeout = 4 * time.Second
	// calloutFlush bounds what Run does at its end with a broker that does not react.
	calloutFlush = time.Second
)

// CalloutConfig is what Callout needs.
type CalloutConfig struct {
	Conns *streams.Conns
	// Credentials give the key that signs the answers, and the number of shards.
	Credentials streams.Credentials
	Directory   Directory
	// Taps knows who may read hub logs from outside; nil lets in nobody but hubs.
	Taps Taps
	// HubConnections is how often one hub may connect to the brokers whose questions this process
	// answers; the zero value allows everything. Each connection of a hub costs two events of its
	// log.
	HubConnections domain.HubLimit
	// Confirm returns nil once this process is known not to be cut off from the cluster: a leader
	// that was deposed and is cut off would let in whoever has been revoked since. nil asks nobody.
	Confirm func(ctx context.Context) error
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log gets a line for each refusal, at most one a minute for the same hub and reason; nil is
	// the default logger.
	Log *slog.Logger
	// Metrics gets the counts; nil registers none.
	Metrics prometheus.Registerer
}

// Taps returns the account of a tap that logs in with its password, and "" for everybody else.
type Taps interface {
	Admit(ctx context.Context, user, password string) (streams.Account, error)
}

// Callout answers the broker's question who a client is: a hub, by MQTT, or a tap. It asks for
// every connection that is not the service's own.
type Callout struct {
	cfg      CalloutConfig
	issuer   nkeys.KeyPair
	results  *prometheus.CounterVec
	seconds  prometheus.Histogram
	refusals *refusalLog
	connects *connectLimits
}

// NewCallout makes a Callout. Nothing is answered before Run.
func NewCallout(cfg CalloutConfig) (*Callout, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	issuer, err := nkeys.FromSeed([]byte(cfg.Credentials.IssuerSeed))
	if err != nil {
		return nil, fmt.Errorf("auth callout: the credentials' issuer_seed: %w", err)
	}
	c := &Callout{
		cfg: cfg, issuer: issuer, refusals: newRefusalLog(cfg.Log, cfg.Now),
		connects: newConnectLimits(cfg.HubConnections),
		results:  newCallouts(), seconds: newCalloutDuration(),
	}
	if cfg.Metrics != nil {
		if err := errors.Join(cfg.Metrics.Register(c.results), cfg.Metrics.Register(c.seconds)); err != nil {
			return nil, fmt.Errorf("auth callout: %w", err)
		}
	}
	return c, nil
}

// Run answers until ctx ends, and then what was asked before. It returns ctx's error.
func (c *Callout) Run(ctx context.Context) error {
	questions := make(chan *nats.Msg, calloutWaiting)
	sub, err := c.cfg.Conns.Cloud.ChanQueueSubscribe(calloutSubject, calloutQueue, questions)
	if err != nil {
		return fmt.Errorf("auth callout: %w", err)
	}
	var workers errgroup.Group
	for range calloutsPerProcessor * runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			for question := range questions {
				c.serve(question)
			}
			return nil
		})
	}
	<-ctx.Done()
	drain(sub)
	close(questions)
	_ = workers.Wait() // they return no errors
	// The answers are on their way when the caller goes on to stop the broker. Without a broker
	// there is nobody to get them.
	_ = c.cfg.Conns.Cloud.FlushTimeout(calloutFlush)
	return ctx.Err()
}

// drain ends a subscription. When it returns, what the broker sent before is in the subscription's
// channel, unless the broker is away, and nothing more gets into it.
func drain(sub *nats.Subscription) {
	drained := make(chan struct{})
	closed := sync.OnceFunc(func() { close(drained) }) // the library can say it twice
	sub.SetClosedHandler(func(string) { closed() })
	if err := sub.Drain(); err == nil {
		select {
		case <-drained:
			return
		case <-time.After(calloutFlush):
		}
	}
	_ = sub.Unsubscribe() // fails only with the connection, which ends the subscription too
}

// serve answers one question. What cannot be answered the broker refuses by itself.
func (c *Callout) serve(question *nats.Msg) {
	began := time.Now()
	request, err := jwt.DecodeAuthorizationRequestClaims(string(question.Data))
	if err != nil {
		c.cfg.Log.Error("auth callout got an unreadable question", "error", err)
		return
	}
	if request.Expires != 0 && request.Expires < c.cfg.Now().Unix() {
		// The broker has closed that connection: answering would make the others wait longer.
		c.count(request, refuse(reasonTooLate, nil))
		return
	}
	answer := jwt.NewAuthorizationResponseClaims(request.UserNkey)
	answer.Audience = request.Server.ID
	user, err := c.admit(request)
	c.count(request, err)
	if err == nil {
		answer.Jwt, err = user.Encode(c.issuer)
	}
	if err != nil {
		answer.Error = "refused" // the reason is for the log here; the hub gets none
	}
	text, err := answer.Encode(c.issuer)
	if err == nil {
		err = question.Respond([]byte(text))
	}
	if err != nil {
		c.cfg.Log.Error("auth callout could not answer", "error", err)
	}
	c.seconds.Observe(time.Since(began).Seconds())
}

// admit decides about one connection: what it may do as a user of the broker, or a refusal.
func (c *Callout) admit(request *jwt.AuthorizationRequestClaims) (*jwt.UserClaims, error) {
	if request.ClientInformation.Type != clientTypeMQTT {
		return c.admitTap(request)
	}
	certificate, err := shownCertificate(request)
	if err != nil {
		return nil, refuse(reasonNoCertificate, err)
	}
	hub, ok := domain.ParseHubID(certificate.Subject.CommonName)
	if !ok || string(hub) != request.ClientInformation.MQTT {
		return nil, refuse(reasonOtherName, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), calloutTimeout)
	defer cancel()
	state, _, err := c.cfg.Directory.Hub(ctx, hub)
	if err != nil {
		return nil, refuse(reasonNoDirectory, err)
	}
	if err := c.confirm(ctx); err != nil {
		return nil, refuse(reasonNoDirectory, err)
	}
	if !state.Registered {
		return nil, refuse(reasonUnknownHub, nil)
	}
	if state.Blocked {
		return nil, refuse(reasonBlocked, nil)
	}
	if state.Certificate != fingerprint(certificate.Raw) {
		return nil, refuse(reasonNotCurrent, nil)
	}
	// Last: only who has the hub's certificate uses up what the hub may.
	if !c.connects.allow(hub, c.cfg.Now()) {
		return nil, refuse(reasonTooOften, nil)
	}
	return c.user(request.UserNkey, hub, certificate.NotAfter), nil
}

func (c *Callout) confirm(ctx context.Context) error {
	if c.cfg.Confirm == nil {
		return nil
	}
	return c.cfg.Confirm(ctx)
}

// clientTypeMQTT is how a broker names the protocol in its questions.
const clientTypeMQTT = "mqtt"

// admitTap decides about a connection that is no hub's: it may be a tap's, which may do what
// streams.TapPermissions says, over plain NATS.
func (c *Callout) admitTap(request *jwt.AuthorizationRequestClaims) (*jwt.UserClaims, error) {
	name := request.ConnectOptions.Username
	if c.cfg.Taps == nil || name == "" {
		return nil, refuse(reasonNotMQTT, nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), calloutTimeout)
	defer cancel()
	account, err := c.cfg.Taps.Admit(ctx, name, request.ConnectOptions.Password)
	if err != nil {
		return nil, refuse(reasonNoTaps, err)
	}
	if err := c.confirm(ctx); err != nil {
		return nil, refuse(reasonNoTaps, err)
	}
	if account == "" {
		return nil, refuse(reasonUnknownTap, nil)
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

// shownCertificate gives the client's certificate of a question, which the broker's TLS has
// verified.
func shownCertificate(request *jwt.AuthorizationRequestClaims) (*x509.Certificate, error) {
	if request.TLS == nil || len(request.TLS.VerifiedChains) == 0 ||
		len(request.TLS.VerifiedChains[0]) == 0 {
		return nil, errors.New("no verified certificate")
	}
	chain, err := parseCertificates([]byte(request.TLS.VerifiedChains[0][0]))
	if err != nil {
		return nil, err
	}
	return chain[0], nil
}

// user says what a hub may do: the topics of the hub link that are its own, in the account of its
// shard, over MQTT, until its certificate ends. A subscription at QoS 1 is, behind the scenes, a
// second one to a subject below $MQTT.sub. that the broker makes up; MQTT clients cannot name such
// subjects themselves.
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
	var refused *refusal
	if !errors.As(err, &refused) {
		c.results.WithLabelValues(resultAccepted).Inc()
		return
	}
	c.results.WithLabelValues(string(refused.reason)).Inc()
	c.refusals.add(request, refused)
}
