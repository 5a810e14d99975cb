package alarms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/domain/alarmmail"
	"hubcloud/projections/readmodel"
	"hubcloud/streams/alarmstate"
	"hubcloud/streams/shares"
)

// Config configures a Notifier. Fields without a default are required.
type Config struct {
	// Database is the configuration of connections to the database of the read models. The lock is
	// held there.
	Database *pgx.ConnConfig
	// Hubs reads what hubs reported last.
	Hubs Hubs
	// SilentHubs returns the hubs that are connected but report no events, and since when. After an
	// error it returns those that are known.
	SilentHubs func(ctx context.Context) (map[domain.HubID]time.Time, error)
	// Org returns an organization with every event that was acknowledged before the call.
	Org func(ctx context.Context, org string) (domain.OrgState, error)
	// Records stores what was mailed.
	Records *alarmstate.Store
	// Send queues a mail to a member of the organization with an id, and returns once the mail is
	// stored. Two mails with one id are one.
	Send  func(ctx context.Context, org domain.OrgState, mail alarmmail.Mail) error
	Rules alarmmail.Rules
	// Interval is the least time between two turns of an organization, unless a device of it reports
	// an alarm. Defaults to 2 s.
	Interval time.Duration
	// Shares reports the turns of organizations; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics; nil means none.
	Metrics prometheus.Registerer
}

// Hubs reads what hubs reported last.
type Hubs interface {
	// ObserveOrg returns the hubs of an organization that are offline or have a device that may need
	// attention, and the organization's hubs of watched, with their devices in it.
	ObserveOrg(
		ctx context.Context, org string, watched map[domain.HubID][]int64,
	) ([]readmodel.ObservedHub, error)
	// OrgsNeedingAttention returns the organizations that have such a hub.
	OrgsNeedingAttention(ctx context.Context) ([]string, error)
	// OrgsOf returns the organizations of hubs.
	OrgsOf(ctx context.Context, hubs []domain.HubID) (map[domain.HubID]string, error)
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.Interval = cmp.Or(c.Interval, 2*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Database == nil:
		return errors.New("notifier: Database: must not be nil")
	case c.Hubs == nil:
		return errors.New("notifier: Hubs: must not be nil")
	case c.SilentHubs == nil:
		return errors.New("notifier: SilentHubs: must not be nil")
	case c.Org == nil:
		return errors.New("notifier: Org: must not be nil")
	case c.Records == nil:
		return errors.New("notifier: Records: must not be nil")
	case c.Send == nil:
		return errors.New("notifier: Send: must not be nil")
	case c.Rules.Title == nil:
		return errors.New("notifier: Rules.Title: must not be nil")
	case c.Rules.MailsPerHour < 1:
		return fmt.Errorf(
			"notifier: Rules.MailsPerHour: is %d, must be at least 1", c.Rules.MailsPerHour,
		)
	case c.Interval < 0:
		return fmt.Errorf("notifier: Interval: is %s, must not be negative", c.Interval)
	}
	return nil
}
