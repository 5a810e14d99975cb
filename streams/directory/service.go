package directory

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/shares"
	"hubcloud/streams/telemetry"
)

const (
	// effectTimeout bounds each wait after a command is stored: for the read models, and for the
	// replicas. A command may have both waits.
	effectTimeout = 10 * time.Second
	// How many aggregates are cached. Hubs are looked up at every connection, the others by
	// management commands only.
	cachedOrgs, cachedAccounts, cachedKeys = 1_000, 1_000, 1_000
	cachedSites, cachedHubs                = 4_000, 20_000
)

// ErrNotInForce is returned by a command that takes access away when the change is stored, but not
// every replica has confirmed it yet. The change will come into force; the command may be repeated.
// The error is also a domain.Unavailable.
var ErrNotInForce = errors.New("stored, but not known to be in force yet")

// ErrReadModelsStopped is returned by ServiceConfig.AwaitReadModels while the read models do not
// follow the directory: an event stops them, or an operator has stopped them.
var ErrReadModelsStopped = errors.New("the read models are stopped")

// ServiceConfig configures a Service. The zero value of each field is usable. There is no Validate:
// a command that needs a missing field returns an error.
type ServiceConfig struct {
	// Environment is the environment of new API keys: domain.EnvironmentLive or
	// domain.EnvironmentDev. CreateKey requires it.
	Environment string
	// InvitationTTL is how long the link of an invitation works. Defaults to
	// domain.DefaultInvitationTTL.
	InvitationTTL time.Duration
	// HubCertificates and HubLogs limit how often one hub may be issued a certificate, and may
	// begin a new event log. Default to no limit.
	HubCertificates, HubLogs domain.HubLimit
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// AwaitReadModels waits until the read models have every event up to a sequence. Its error does
	// not fail a command: the change is stored, and can be read later. Defaults to no wait.
	AwaitReadModels func(ctx context.Context, seq uint64) error
	// AwaitReplicas waits until every replica acts by every event up to a sequence. Defaults to no
	// wait.
	AwaitReplicas func(ctx context.Context, seq uint64) error
	// Quotas limit what organizations may create. Default to no limits.
	Quotas Quotas
	// Admit is called with the size of events before they are appended. Its error, such as for
	// a full disk, fails the command. Defaults to none.
	Admit func(bytes int) error

	// Presence is required by AddHub.
	Presence Presence
	// VirtualSecret returns the enrolment secret of a virtual hub. It is required by AddVirtualHub.
	VirtualSecret func(hub domain.HubID) string
	// Connections is required by ResetLink, RotateSecret, BlockHub, ReleaseHub and RemoveHub.
	Connections Connections
	// Logs is required by ReleaseHub and RemoveHub.
	Logs HubLogs
	// Mailer is required by Invite.
	Mailer Mailer
	// RateLimiter is required by Quotas.InvitationsPerAddress.
	RateLimiter RateLimiter

	// Shares reports Quotas.ChangesPerHour; nil reports nothing.
	Shares *shares.Registry
	// Metrics registers the metrics of the service and of its appends. Defaults to none.
	Metrics prometheus.Registerer
	// Tracer starts a span for each append, and for each wait until a command is in force. Defaults
	// to none.
	Tracer telemetry.Tracer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c ServiceConfig) WithDefaults() ServiceConfig {
	noWait := func(context.Context, uint64) error { return nil }
	c.InvitationTTL = cmp.Or(c.InvitationTTL, domain.DefaultInvitationTTL)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.AwaitReadModels == nil {
		c.AwaitReadModels = noWait
	}
	if c.AwaitReplicas == nil {
		c.AwaitReplicas = noWait
	}
	return c
}

// Service is the write side of the directory: every management command. When a command returns, its
// effect can be read, unless the read models lag for more than ten seconds. A command that changes
// nothing stores nothing and succeeds. A rejected command returns a *domain.Error. A change over
// Quotas.ChangesPerHour is rate_limited.
type Service struct {
	cfg      ServiceConfig
	metrics  *metrics
	log      *Log
	quotas   quotaState
	orgs     *Repository[domain.OrgState]
	accounts *Repository[domain.AccountState]
	sites    *Repository[domain.SiteState]
	hubs     *Repository[domain.HubState]
	keys     *Repository[domain.KeyState]
	webhooks *Repository[domain.WebhooksState]
}

// NewService returns the write side of a log.
func NewService(l *Log, cfg ServiceConfig) *Service {
	cfg = cfg.WithDefaults()
	// A copy: the caller's Log keeps appending without this service's metrics, tracer and admission
	// check.
	traced := *l
	traced.metrics, traced.tracer, traced.admit = newMetrics(cfg.Metrics), cfg.Tracer, cfg.Admit
	l = &traced
	hubSubject := func(id string) string { return streams.HubSubject(domain.HubID(id)) }
	hourly := func(name string, most int) *shares.Rate[string] {
		return shares.NewRate[string](cfg.Shares, shares.Hourly(name, most), cfg.Now())
	}
	daily := func(name string, most int) *shares.Rate[string] {
		return shares.NewRate[string](cfg.Shares, shares.Daily(name, most), cfg.Now())
	}
	return &Service{
		cfg:     cfg,
		metrics: l.metrics,
		log:     l,
		quotas: quotaState{
			changes:              hourly("changes", cfg.Quotas.ChangesPerHour),
			ofMembers:            hourly("changes_of_members", (cfg.Quotas.ChangesPerHour+1)/2),
			preferences:          daily("preferences", 100*cfg.Quotas.PreferencesPerDay),
			preferencesOfMembers: daily("preferences_of_members", cfg.Quotas.PreferencesPerDay),
		},
		orgs:     NewRepository(l, streams.OrgSubject, domain.EvolveOrg, cachedOrgs),
		accounts: NewRepository(l, streams.AccountSubject, domain.EvolveAccount, cachedAccounts),
		sites:    NewRepository(l, siteSubject, domain.EvolveSite, cachedSites),
		hubs:     NewRepository(l, hubSubject, domain.EvolveHub, cachedHubs),
		keys:     NewRepository(l, streams.KeySubject, domain.EvolveKey, cachedKeys),
		webhooks: NewRepository(
			l, streams.WebhooksSubject, domain.EvolveWebhooks, cachedOrgs,
		),
	}
}

// CreateOrg creates an organization with its first owner, and the owner's account if there is none.
// It returns the ids of the organization and of the owner as its member. When it returns, every
// replica lets the owner in, or did not confirm that in time. If o.Actor is a member without an id,
// the events have the owner's id. It returns rate_limited for an owner over Quotas.OrgsPerAccount.
func (s *Service) CreateOrg(
	ctx context.Context, o domain.Origin, name, ownerEmail string,
) (orgID, ownerID string, err error) {
	if name, err = domain.CleanName("name", name); err != nil {
		return "", "", err
	}
	if ownerEmail, err = domain.CleanEmail("owner_email", ownerEmail); err != nil {
		return "", "", err
	}
	o = s.stamp(o)
	orgID, ownerID = s.newID(o), s.newID(o)
	if o.Actor == (domain.Actor{Kind: domain.ActorMember}) {
		o.Actor.ID = ownerID
	}
	defer s.quotas.creations.lock(ctx, "owner "+domain.AccountKey(domain.MailboxOf(ownerEmail)))()
	if err := s.checkOrgQuota(o, ownerEmail); err != nil {
		return "", "", err
	}
	if _, err := s.EnsureAccount(ctx, o, ownerEmail); err != nil {
		return "", "", err
	}
	_, seq, err := s.orgs.Update(ctx, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideCreateOrg(org, o, orgID, name, ownerID, ownerEmail)
	})
	if err != nil {
		return "", "", err
	}
	s.awaitGranted(ctx, seq)
	return orgID, ownerID, nil
}

// Org returns an organization with every event that was acknowledged before the call, and not_found
// for any other id.
func (s *Service) Org(ctx context.Context, orgID string) (domain.OrgState, error) {
	if !domain.IsUUID(orgID) {
		return domain.OrgState{}, domain.ErrOrgNotFound()
	}
	org, _, err := s.orgs.Get(ctx, orgID)
	if err == nil && !org.Exists() {
		err = domain.ErrOrgNotFound()
	}
	return org, err
}

// stamp sets the origin's time to now if it has none.
func (s *Service) stamp(o domain.Origin) domain.Origin {
	if o.At.IsZero() {
		o.At = s.cfg.Now()
	}
	return o
}

func (s *Service) newID(o domain.Origin) string {
	var entropy [10]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return domain.NewUUIDv7(o.At, entropy)
}

// awaitReadable waits until the read models have the event at seq. It returns no error, because the
// command has succeeded even if the wait fails: a caller that got an error would repeat the
// command, and create a second site.
func (s *Service) awaitReadable(ctx context.Context, seq uint64) {
	_ = s.awaitEffect(ctx, seq, false)
}

// awaitGranted waits until the read models have the event at seq and every replica acts by it. It
// is for commands that grant access. It returns no error, because they have succeeded even if a
// wait fails: the replicas follow, and a result such as a new key can be shown only once.
func (s *Service) awaitGranted(ctx context.Context, seq uint64) {
	_ = s.awaitEffect(ctx, seq, true)
}

// awaitInForce waits until the read models have the event at seq and every replica acts by it. It
// is for commands that take access away. Unless every replica confirms the event, it returns
// ErrNotInForce: the command has not succeeded yet.
func (s *Service) awaitInForce(ctx context.Context, seq uint64) error {
	if err := s.awaitEffect(ctx, seq, true); err != nil {
		return domain.UnavailableBecause(
			fmt.Errorf("directory: sequence %d: %w: %w", seq, ErrNotInForce, err),
			"the change is stored, but a replica of the service has not confirmed that it acts "+
				"by it; it will, and the request can be repeated",
		)
	}
	return nil
}

// awaitEffect waits for the read models and then, if replicas is set, for the replicas: each for at
// most effectTimeout, and the second also if the first fails. It returns the error of the wait for
// the replicas only. ErrReadModelsStopped counts as no failure.
func (s *Service) awaitEffect(ctx context.Context, seq uint64, replicas bool) (replicasErr error) {
	began := time.Now()
	ctx, span := s.cfg.Tracer.Start(ctx, "await effect", trace.SpanKindInternal)
	modelsErr := waitWithin(ctx, effectTimeout, seq, s.cfg.AwaitReadModels)
	if errors.Is(modelsErr, ErrReadModelsStopped) {
		modelsErr = nil
	}
	if replicas {
		replicasErr = waitWithin(ctx, effectTimeout, seq, s.cfg.AwaitReplicas)
	}
	err := errors.Join(modelsErr, replicasErr)
	span.End(err)
	if err != nil {
		s.metrics.effectsUnconfirmed.Inc()
	} else {
		s.metrics.effectWait.Observe(time.Since(began).Seconds())
	}
	return replicasErr
}

func waitWithin(
	ctx context.Context, limit time.Duration, seq uint64, wait func(context.Context, uint64) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return wait(ctx, seq)
}
