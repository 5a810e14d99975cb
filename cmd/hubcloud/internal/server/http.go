package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/httpapi/mail"
	"hubcloud/httpapi/oidc"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/webhook"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/statelog"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/feed/orgfeed"
	"hubcloud/streams/outbox"
)

// profileTimeout bounds responses on the admin port. A CPU profile takes as long as its request
// asks for.
const profileTimeout = 10 * time.Minute

// web is the layer of the HTTP servers. All but the admin port needs the role api.
type web struct {
	*hubLink
	api         http.Handler
	keyUse      *directory.KeyUse
	feedReaders *orgfeed.Registry
	mailer      *mail.Mailer
	webhooks    *webhook.Deliverer
	codes       *commands.Codes
	// alarmState has what was mailed about alarms.
	alarmState *outbox.AlarmRecords
	provider   *oidc.Provider // nil without --oidc
	portal     *portal.Portal
}

// startHTTP opens the public port on a replica with the role api, and the admin port on each.
func (l *hubLink) startHTTP(ctx context.Context) (*web, error) {
	s := &web{hubLink: l}
	admin, err := net.Listen("tcp", s.cfg.Admin)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	s.bound.Admin = admin.Addr().String()
	s.registry.MustRegister(streams.NewCollector(s.conns, s.reads), newReadiness(s.health))
	public, err := s.startPublic(ctx)
	if err != nil {
		admin.Close()
		return nil, err
	}
	operators := httpapi.NewServer(s.adminHandler(public), s.logger)
	operators.WriteTimeout = profileTimeout
	s.serveHTTP(public.OperatorsListener(admin), operators)
	return s, nil
}

// startPublic serves the API and the portal on the public port. Without the role api it opens no
// port, and the handler that it returns only answers health checks.
func (s *web) startPublic(ctx context.Context) (httpapi.API, error) {
	if !s.cfg.has(roleAPI) {
		return httpapi.New(httpapi.Config{
			Build: httpapi.Build(installation.Program()), Environment: s.cfg.Environment,
			Ready: s.health.check, Draining: s.draining, Logger: s.logger,
		})
	}
	listener, err := net.Listen("tcp", s.cfg.HTTP)
	if err != nil {
		return httpapi.API{}, fmt.Errorf("--http: %w", err)
	}
	s.bound.HTTP = listener.Addr().String()
	s.bound.TLS = s.cfg.https()
	s.bound.PublicURL = s.cfg.publicURL(s.bound.HTTP)
	api, err := s.startAPI(ctx)
	if err != nil {
		listener.Close()
		return httpapi.API{}, err
	}
	if s.certificate == nil {
		s.serveHTTP(api.Listener(listener), httpapi.NewServer(api, s.logger))
		return api, nil
	}
	if err := s.serveHTTPS(listener, api); err != nil {
		listener.Close()
		return httpapi.API{}, err
	}
	return api, nil
}

// startAPI starts the parts that only the API and the portal use, and returns the handler of the
// public port. It needs the public URL.
func (s *web) startAPI(ctx context.Context) (httpapi.API, error) {
	s.keyUse = directory.NewKeyUse(s.buckets.KeyUse, s.logger, s.registry)
	s.run(stopLoops, "key use", s.keyUse.Run)
	s.run(stopLoops, "sign-in", s.signIn.Run)
	if err := s.startFeedReaders(); err != nil {
		return httpapi.API{}, err
	}
	var err error
	if s.webhooks, err = s.newWebhooks(); err != nil {
		return httpapi.API{}, fmt.Errorf("webhooks: %w", err)
	}
	if s.codes, err = s.newCodes(); err != nil {
		return httpapi.API{}, fmt.Errorf("door codes: %w", err)
	}
	if err := s.startProvider(); err != nil {
		return httpapi.API{}, err
	}
	if err := s.startMail(ctx); err != nil {
		return httpapi.API{}, fmt.Errorf("mail: %w", err)
	}
	api, err := s.newAPI()
	if err != nil {
		return httpapi.API{}, err
	}
	s.api = api
	if err := s.runWebhooks(); err != nil {
		return httpapi.API{}, fmt.Errorf("webhooks: %w", err)
	}
	s.run(stopLoops, "shared rate limits", func(ctx context.Context) error {
		return api.ShareLimits(ctx, grantsBus{s.conns.Cloud, s.replicaID})
	})
	return api, nil
}

// startFeedReaders starts what knows the readers of events that name themselves.
func (s *web) startFeedReaders() (err error) {
	s.feedReaders, err = orgfeed.NewRegistry(orgfeed.RegistryConfig{
		Conn: s.conns.Cloud, Bucket: s.buckets.FeedReaders, Retention: s.cfg.EventRetention,
		Counted: s.orgFeed.Counted, HubLag: s.hubLogs.Lag,
		Owns:   func(org string, hub domain.HubID) bool { return s.orgOf(hub) == org },
		Logger: s.logger, Metrics: s.registry,
	})
	if err != nil {
		return err
	}
	s.run(stopLoops, "feed readers", s.feedReaders.Run)
	return nil
}

// newAPI returns the handler of the public port.
func (s *web) newAPI() (httpapi.API, error) {
	enrolment, err := identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: s.authority, Directory: s.directory, Broker: s.brokerURL, Logger: s.logger,
		Metrics: s.registry,
	})
	if err != nil {
		return httpapi.API{}, err
	}
	proxies, err := s.cfg.trustedProxies()
	if err != nil {
		return httpapi.API{}, err
	}
	return httpapi.New(httpapi.Config{
		Keys:            s.access,
		Hubs:            s.access,
		ReadModels:      models{s.store, s.directory},
		Directory:       s.directory,
		PastStates:      statelog.NewHistory(s.hubLogs, s.cfg.EventRetention, s.orgOf, s.shares, nil),
		Devices:         s.devices,
		Commands:        s.commands,
		Idempotency:     s.keys,
		Events:          apiEvents{s.hubLogs},
		OrgEvents:       apiOrgEvents{s.orgFeed, s.store},
		FeedReaders:     s.feedReaders,
		Audit:           apiAudit{s.store, s.access},
		Webhooks:        s.webhooks,
		Codes:           s.codes,
		Enrolment:       enrolment,
		Portal:          s.portal,
		Attention:       s.portal,
		KeyUse:          s.keyUse,
		Freshness:       s.freshness,
		Ready:           s.health.check,
		Build:           httpapi.Build(installation.Program()),
		Environment:     s.cfg.Environment,
		Rate:            float64(s.cfg.Rate),
		Burst:           s.cfg.Burst,
		StreamLifetime:  s.cfg.StreamLifetime,
		StreamKeepalive: s.cfg.StreamKeepalive,
		StreamsPerKey:   s.cfg.StreamsPerKey,
		Retention:       s.cfg.EventRetention,
		HubTimeout:      s.cfg.HubTimeout,
		TrustedProxies:  proxies,
		Draining:        s.draining,
		Logger:          s.logger,
		Shares:          s.shares,
		Metrics:         s.registry,
		Tracer:          s.traces.Tracer(),
		Connections:     s.files.api,
	})
}

// adminHandler returns the handler of the admin port: metrics, profiles, what the doctor asks, and
// health with the details that the public port does not show.
func (s *web) adminHandler(public httpapi.API) http.Handler {
	r := chi.NewRouter()
	r.Handle(
		"/metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{Registry: s.registry}),
	)
	r.Method(http.MethodGet, doctor.Path, doctor.Handler(doctor.Service{
		Conns: s.reads, Journals: s.settings.Journals, ExternalBroker: s.cfg.NATSURL != "",
		OpenFiles: s.files.limit, Connections: s.files.api, HubConnections: s.files.broker,
		LogReplicas: s.cfg.LogReplicas, Live: s.cfg.Environment == domain.EnvironmentLive,
		Components: s.health.check, Projections: s.control.Status, Metrics: s.registry,
		Shares: s.shares, Directory: s.directoryLog, Provider: s.provider,
		Presences: s.presence.All, Disconnections: s.hubLogs.Disconnections,
	}))
	r.Handle("/healthz", public)
	r.Handle("/readyz", public.Readiness())
	r.HandleFunc("/debug/pprof/*", pprof.Index)
	// Not with pprof.Cmdline: flags may have passwords, such as --smtp-url.
	r.HandleFunc("/debug/pprof/cmdline", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, os.Args[0])
	})
	r.HandleFunc("/debug/pprof/profile", pprof.Profile)
	r.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	r.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return r
}

// serveHTTP serves a listener. The stop accepts no more requests and waits for those under way.
func (s *web) serveHTTP(listener net.Listener, server *http.Server) {
	s.atStop(stopRequests, func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			s.logger.Warn("requests cut off by the stop", "error", err)
			server.Close()
		}
	})
	s.run(stopLoops, "http "+listener.Addr().String(), func(ctx context.Context) error {
		err := server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	})
}
