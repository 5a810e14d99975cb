package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/telemetry"
)

const (
	// maxSecretBytes is far beyond the 43 characters of a secret.
	maxSecretBytes = 1 << 10
	// refusalTime is how long a refusal takes, counted from the request: longer than what is done
	// for it, so that it tells nothing of that.
	refusalTime = 50 * time.Millisecond
	// resultIssued labels a success in the metric; failures are labelled with their code.
	resultIssued = "issued"
)

// Directory is what identity needs of the directory.
type Directory interface {
	// Hub gives a hub as it is now: what was acknowledged before the call is in it. An unknown hub
	// is the zero state.
	Hub(ctx context.Context, hub domain.HubID) (domain.HubState, uint64, error)
}

// IssuingDirectory also records certificates.
type IssuingDirectory interface {
	Directory
	IssueCertificate(
		ctx context.Context, o domain.Origin, hub domain.HubID, c domain.IssueCertificate,
	) error
}

// EnrolmentConfig is what Enrolment needs.
type EnrolmentConfig struct {
	Authority *Authority
	Directory IssuingDirectory
	// Broker gives the address of the broker for hubs, mqtts://HOST:PORT.
	Broker func() string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log gets a line for each certificate and each refusal; nil is the default logger.
	Log *slog.Logger
	// Metrics gets the counts; nil registers none.
	Metrics prometheus.Registerer
}

// Enrolment gives hubs their certificates. It is safe for concurrent use.
type Enrolment struct {
	cfg     EnrolmentConfig
	results *prometheus.CounterVec
	// limited bounds the lines about hubs that ask too often.
	limited rate.Sometimes
}

// NewEnrolment makes an Enrolment.
func NewEnrolment(cfg EnrolmentConfig) (*Enrolment, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	e := &Enrolment{
		cfg:     cfg,
		results: newEnrolments(),
		limited: rate.Sometimes{First: 1, Interval: time.Minute},
	}
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(e.results); err != nil {
			return nil, fmt.Errorf("enrolment: %w", err)
		}
	}
	return e, nil
}

// Issue gives a hub the certificate that it asks for and makes it the current one; the former ends
// at the hub's next connection.
//
// Errors are domain.Errors: invalid_request for a serial, secret or certificate request that is
// none, whatever hub it is for; then unauthenticated, the same and after the same time for a serial
// that is not in the inventory, for a wrong secret and for a blocked hub; then rate_limited for a
// hub that was issued too many certificates lately; service_unavailable when the directory does not
// answer. What else fails is no domain.Error.
func (e *Enrolment) Issue(
	ctx context.Context, req protocol.CertificateRequest,
) (protocol.Certificate, error) {
	refusal := time.NewTimer(refusalTime)
	defer refusal.Stop()
	issued, err := e.issue(ctx, req)
	result := resultIssued
	if err != nil {
		result = string(domain.CodeOf(err))
	}
	e.results.WithLabelValues(result).Inc()
	if result == string(domain.CodeUnauthenticated) {
		select {
		case <-refusal.C:
		case <-ctx.Done():
		}
	}
	return issued, err
}

func (e *Enrolment) issue(
	ctx context.Context, req protocol.CertificateRequest,
) (protocol.Certificate, error) {
	hub, ok := domain.ParseSerial(req.Serial)
	if !ok {
		return protocol.Certificate{}, domain.Errorf(
			domain.CodeInvalidRequest, "serial: is no Serial; one looks like HUB-7K2M-Q4XD-93TA",
		)
	}
	if req.Secret == "" || len(req.Secret) > maxSecretBytes {
		return protocol.Certificate{}, domain.Errorf(
			domain.CodeInvalidRequest,
			"secret: is no enrolment secret; one is 32 random bytes, written base64url without padding",
		)
	}
	key, err := parseCSR(req.CSR)
	if err != nil {
		return protocol.Certificate{}, err
	}
	state, _, err := e.cfg.Directory.Hub(ctx, hub)
	if err != nil {
		return protocol.Certificate{}, fmt.Errorf("enrol %s: %w", hub, err)
	}
	if !secretMatches(state, req.Secret) {
		e.cfg.Log.InfoContext(
			ctx, "enrolment refused", "request_id", telemetry.RequestID(ctx), "hub_id", hub,
			"in_inventory", state.Registered, "blocked", state.Blocked,
		)
		return protocol.Certificate{}, domain.Errorf(
			domain.CodeUnauthenticated, "unknown serial or wrong secret",
		)
	}
	issued, err := e.cfg.Authority.IssueHub(hub, key)
	if err != nil {
		return protocol.Certificate{}, err
	}
	origin := domain.Origin{
		At:        e.cfg.Now(),
		Actor:     domain.Actor{Kind: domain.ActorHub, ID: string(hub)},
		RequestID: telemetry.RequestID(ctx),
	}
	err = e.cfg.Directory.IssueCertificate(ctx, origin, hub, domain.IssueCertificate{
		Fingerprint: issued.Fingerprint, ExpiresAt: issued.ExpiresAt, SecretHash: state.SecretHash,
	})
	if err != nil {
		if domain.CodeOf(err) == domain.CodeRateLimited {
			e.warnLimited(ctx, hub)
		}
		return protocol.Certificate{}, fmt.Errorf("enrol %s: %w", hub, err)
	}
	e.cfg.Log.InfoContext(
		ctx, "certificate issued", "request_id", telemetry.RequestID(ctx), "hub_id", hub,
		"fingerprint", issued.Fingerprint, "expires_at", domain.FormatTime(issued.ExpiresAt),
	)
	return protocol.Certificate{
		HubID:       string(hub),
		Certificate: string(issued.PEM),
		CA:          string(e.cfg.Authority.CAPEM()),
		Broker:      e.cfg.Broker(),
		ExpiresAt:   domain.FormatTime(issued.ExpiresAt),
	}, nil
}

// warnLimited logs that a hub asks for certificates too often, once a minute at most.
func (e *Enrolment) warnLimited(ctx context.Context, hub domain.HubID) {
	e.limited.Do(func() {
		e.cfg.Log.WarnContext(
			ctx, "enrolment limited: the hub asks for certificates too often",
			"request_id", telemetry.RequestID(ctx), "hub_id", hub,
		)
	})
}

// secretMatches compares in constant time, and does the same for a hub that is not in the
// inventory. The secret of a blocked hub matches nothing.
func secretMatches(hub domain.HubState, secret string) bool {
	given := sha256.Sum256([]byte(secret))
	kept := hub.SecretHash
	if !hub.Registered || len(kept) != len(given) {
		kept = make([]byte, len(given))
	}
	return subtle.ConstantTimeCompare(given[:], kept) == 1 && hub.Registered && !hub.Blocked
}
