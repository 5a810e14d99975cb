package identity

import (
	"cmp"
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
	// maxSecretBytes is well above the 43 characters of a secret.
	maxSecretBytes = 1 << 10
	// rejectionTime is how long a rejection takes. It is longer than all work for a request, so its
	// timing reveals nothing.
	rejectionTime = 50 * time.Millisecond
	// resultIssued is the metric's label for a success. Failures have their error code.
	resultIssued = "issued"
)

// Directory reads hubs from the directory.
type Directory interface {
	// Hub returns the current state of a hub, including every change acknowledged before the call.
	// An unknown hub has the zero state.
	Hub(ctx context.Context, hub domain.HubID) (domain.HubState, uint64, error)
}

// IssuingDirectory is a Directory that also records certificates.
type IssuingDirectory interface {
	Directory
	IssueCertificate(
		ctx context.Context, o domain.Origin, hub domain.HubID, c domain.IssueCertificate,
	) error
}

// EnrolmentConfig configures an Enrolment. Authority, Directory and Broker are required.
type EnrolmentConfig struct {
	// Authority signs the certificates.
	Authority *Authority `check:"set"`
	// Directory has the hubs' secrets and records the certificates.
	Directory IssuingDirectory `check:"set"`
	// Broker returns the address of the broker for hubs, mqtts://HOST:PORT.
	Broker func() string `check:"set"`
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger receives a line for each certificate and each rejection. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics. Defaults to none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c EnrolmentConfig) WithDefaults() EnrolmentConfig {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Enrolment issues certificates to hubs. It is safe for concurrent use.
type Enrolment struct {
	cfg     EnrolmentConfig
	results *prometheus.CounterVec
	// limited limits the log lines about hubs that enrol too often.
	limited rate.Sometimes
}

// NewEnrolment returns an Enrolment.
func NewEnrolment(cfg EnrolmentConfig) (*Enrolment, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("enrolment", cfg); err != nil {
		return nil, err
	}
	e := &Enrolment{
		cfg:     cfg,
		results: newEnrolments(cfg.Metrics),
		limited: rate.Sometimes{First: 1, Interval: time.Minute},
	}
	return e, nil
}

// Issue issues a certificate to a hub and makes it the hub's current one. The hub's former
// certificate is rejected at its next connection.
//
// Issue returns a *domain.Error: invalid_request for a malformed serial, secret or certificate
// request; unauthenticated for a serial that is not in the inventory, a wrong secret or a blocked
// hub, all after the same time; rate_limited for a hub with too many recent certificates;
// service_unavailable if the directory does not respond. Other errors are internal.
func (e *Enrolment) Issue(
	ctx context.Context, req protocol.CertificateRequest,
) (protocol.Certificate, error) {
	rejection := time.NewTimer(rejectionTime)
	defer rejection.Stop()
	issued, err := e.issue(ctx, req)
	result := resultIssued
	if err != nil {
		result = string(domain.CodeOf(err))
	}
	e.results.WithLabelValues(result).Inc()
	if result == string(domain.CodeUnauthenticated) {
		select {
		case <-rejection.C:
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
			domain.CodeInvalidRequest, "serial: must have the form HUB-7K2M-Q4XD-93TA",
		)
	}
	if req.Secret == "" || len(req.Secret) > maxSecretBytes {
		return protocol.Certificate{}, domain.Errorf(
			domain.CodeInvalidRequest, "secret: must be the base64url text of an enrolment secret",
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
		e.cfg.Logger.InfoContext(
			ctx, "enrolment rejected", "request_id", telemetry.RequestID(ctx), "hub_id", hub,
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
	e.cfg.Logger.InfoContext(
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

// warnLimited logs, at most once a minute, that a hub enrols too often.
func (e *Enrolment) warnLimited(ctx context.Context, hub domain.HubID) {
	e.limited.Do(func() {
		e.cfg.Logger.WarnContext(
			ctx, "enrolment rate limited",
			"request_id", telemetry.RequestID(ctx), "hub_id", hub,
		)
	})
}

// secretMatches reports whether secret is the hub's enrolment secret and the hub may enrol. It
// takes the same time for a hub that is not in the inventory.
func secretMatches(hub domain.HubState, secret string) bool {
	given := sha256.Sum256([]byte(secret))
	stored := hub.SecretHash
	if !hub.Registered || len(stored) != len(given) {
		stored = make([]byte, len(given))
	}
	return subtle.ConstantTimeCompare(given[:], stored) == 1 && hub.Registered && !hub.Blocked
}
