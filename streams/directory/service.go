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
	"hubcloud/streams/allowance"
	"hubcloud/streams/telemetry"
)

const (
	// settleTimeout bounds how long a command waits for its effect after it is stored.
	settleTimeout = 10 * time.Second
	// How many aggregates stay warm. Hubs are looked up at every connection, the others by
	// management calls alone.
	warmOrgs, warmAccounts, warmSites, warmHubs, warmKeys = 1_000, 1_000, 4_000, 20_000, 1_000
)

// ErrNotSettled says that a command that takes access away is stored, and that it was not seen in
// time that it is in force everywhere. It will be; the command may be given again. Callers see
// service_unavailable.
var ErrNotSettled = errors.New("stored, but not known to be in force yet")

// ErrStandingStill says that the read models do not follow the directory until somebody does
// something about it: an event stops them, or an operator has stopped them.
var ErrStandingStill = errors.New("the read models stand still")

// ServiceConfig is what a Service needs beside the log.
type ServiceConfig struct {
	// Environment is that of the keys made here: domain.EnvironmentLive or domain.EnvironmentDev.
	Environment string
	// InvitationTTL is how long the link of an invitation works; 0 is domain.DefaultInvitationTTL.
	InvitationTTL time.Duration
	// HubCertificates and HubLogs are how often one hub may be issued a certificate, and begin its
	// event log anew. The zero value allows everything.
	HubCertificates, HubLogs domain.HubLimit
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Settled waits until the read models have everything up to a sequence; nil does not wait.
	// Whatever its error, a command waits no longer and succeeds: it is stored, and read as soon as
	// they go on.
	Settled func(ctx context.Context, seq uint64) error
	// EverywhereApplied waits until every replica acts by everything up to a sequence; nil does not
	// wait.
	EverywhereApplied func(ctx context.Context, seq uint64) error
	// Quotas bound what organizations can create.
	Quotas Quotas
	// Admit is asked for room on the disk before events are appended; its error is returned. Nil
	// admits everything.
	Admit func(bytes int) error
	// Metrics is where the metrics of the service and of its log are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Tracer begins a span for each append, and for each wait until a command is in force; the zero
	// value none.
	Tracer telemetry.Tracer
}

// Service is the directory's write side: every management command there is. What a command did can
// be read when it returns, and a command that changes nothing is stored as nothing and succeeds.
// Refusals are *domain.Error.
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
}

// NewService makes the write side of a log.
func NewService(l *Log, cfg ServiceConfig) *Service {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.InvitationTTL == 0 {
		cfg.InvitationTTL = domain.DefaultInvitationTTL
	}
	nowhere := func(context.Context, uint64) error { return nil }
	if cfg.Settled == nil {
		cfg.Settled = nowhere
	}
	if cfg.EverywhereApplied == nil {
		cfg.EverywhereApplied = nowhere
	}
	if cfg.Metrics != nil {
		l.metrics.register(cfg.Metrics)
	}
	traced := *l
	traced.tracer, traced.admit = cfg.Tracer, cfg.Admit
	l = &traced
	hubSubject := func(id string) string { return streams.HubSubject(domain.HubID(id)) }
	return &Service{
		cfg:      cfg,
		metrics:  l.metrics,
		log:      l,
		quotas:   quotaState{changes: allowance.NewHourly(cfg.Quotas.ChangesPerHour)},
		orgs:     NewRepository(l, streams.OrgSubject, domain.EvolveOrg, warmOrgs),
		accounts: NewRepository(l, streams.AccountSubject, domain.EvolveAccount, warmAccounts),
		sites:    NewRepository(l, siteSubject, domain.EvolveSite, warmSites),
		hubs:     NewRepository(l, hubSubject, domain.EvolveHub, warmHubs),
		keys:     NewRepository(l, streams.KeySubject, domain.EvolveKey, warmKeys),
	}
}

// CreateOrg begins an organization with its first owner, who gets an account if there is none, and
// gives both ids. Every replica lets the owner in when it returns. An origin of a member without an
// id is the owner's, whose id is made only now.
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
	defer s.quotas.turns.take(ctx, "owner "+domain.AccountKey(ownerEmail))()
	if err := s.admitOrg(o, ownerEmail); err != nil {
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
	s.granted(ctx, seq)
	return orgID, ownerID, nil
}

// org gives an organization that exists, and not_found for any other.
func (s *Service) org(ctx context.Context, orgID string) (domain.OrgState, error) {
	if !domain.IsUUID(orgID) {
		return domain.OrgState{}, domain.ErrOrgNotFound()
	}
	org, _, err := s.orgs.Get(ctx, orgID)
	if err == nil && !org.Exists() {
		err = domain.ErrOrgNotFound()
	}
	return org, err
}

// stamp gives a command its time, to the microsecond as it is stored, if its origin brings none.
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

// settled waits until the read models have a command, so that whoever gave it finds what it did. A
// command that they do not have in time has succeeded all the same: it is stored, and they will
// have it. To call it failed would have it done again, and a second site made.
func (s *Service) settled(ctx context.Context, seq uint64) {
	s.await(ctx, seq, s.cfg.Settled)
}

// granted waits until the read models have a command that lets somebody in, and every replica acts
// by it. It has succeeded without that too: a replica that does not know of it yet will, and what
// the command made cannot be made again, such as a key that is shown once.
func (s *Service) granted(ctx context.Context, seq uint64) {
	s.await(ctx, seq, s.cfg.Settled, s.cfg.EverywhereApplied)
}

// inForce waits until the read models have a command that takes access away, and every replica acts
// by it. While it is not certain that every replica does, the command has not succeeded.
func (s *Service) inForce(ctx context.Context, seq uint64) error {
	s.await(ctx, seq, s.cfg.Settled)
	if err := s.await(ctx, seq, s.cfg.EverywhereApplied); err != nil {
		return fmt.Errorf("directory: sequence %d: %w: %w: %w", seq, domain.Unavailable(
			"the change is stored, but a replica of the service has not confirmed that it acts "+
				"by it; it will, and the request can be repeated",
		), ErrNotSettled, err)
	}
	return nil
}

// await waits for one after the other, for each as long as settleTimeout, and returns the first
// error. Read models that stand still are none.
func (s *Service) await(
	ctx context.Context, seq uint64, waits ...func(context.Context, uint64) error,
) (err error) {
	began := time.Now()
	ctx, span := s.cfg.Tracer.Start(ctx, "await effect", trace.SpanKindInternal)
	defer func() { span.End(err) }()
	for _, wait := range waits {
		if failed := within(ctx, settleTimeout, seq, wait); failed != nil &&
			!errors.Is(failed, ErrStandingStill) {
			s.metrics.unsettled.Inc()
			err = cmp.Or(err, failed)
		}
	}
	if err == nil {
		s.metrics.settleTime.Observe(time.Since(began).Seconds())
	}
	return err
}

func within(
	ctx context.Context, limit time.Duration, seq uint64, wait func(context.Context, uint64) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return wait(ctx, seq)
}
