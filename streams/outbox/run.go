package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// deliverers is how many mails of a class are delivered at the same time, so that a slow server
	// delays few mails.
	deliverers = 4
	// deliveryTimeout bounds one delivery.
	deliveryTimeout = 90 * time.Second
	// ackWait is the time without progress after which the broker hands a mail out again, as after
	// a kill of the process. After a restart the broker also waits so long before it hands out
	// mails that wait for their next try. progressInterval is the time between two reports of
	// progress.
	ackWait          = 10 * time.Second
	progressInterval = 3 * time.Second
	// nextTimeout bounds one request for the next mail, nextPause is the pause after a failed one.
	nextTimeout = 30 * time.Second
	nextPause   = time.Second
	// nextHeartbeat is how often the broker confirms that it still has the request. A broker that
	// was restarted has lost it.
	nextHeartbeat = 2 * time.Second
	// startPause is the pause between two tries to create the consumers.
	startPause = 5 * time.Second
	// eraseTimeout bounds the removal of a mail.
	eraseTimeout = 5 * time.Second
	// countInterval is the time between two counts of waiting mails.
	countInterval = 15 * time.Second
)

// class is one of the classes of mails. Each has its own consumer and deliverers, so that urgent
// mails and alarms never wait for ordinary ones.
type class struct {
	consumer string
	filters  []string
}

var (
	ordinary = class{"delivery", []string{ordinaryPrefix + "*.*"}}
	alarm    = class{"alarm", []string{alarmPrefix + "*.*"}}
	urgent   = class{"urgent", []string{urgentPrefix + "*"}}
)

// config returns the configuration of the class's consumer, which all replicas share. The number
// of unacknowledged mails is not limited: mails that wait for their next try count among them, and
// must not block others.
func (c class) config() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:        c.consumer,
		FilterSubjects: c.filters,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        ackWait,
		MaxDeliver:     -1,
		MaxAckPending:  -1,
	}
}

// Run delivers mails until ctx ends, and returns ctx's error then; any other error means that the
// connection was closed. deliver gets the content of a mail. It returns nil once the mail is
// delivered. ErrRejected and ErrObsolete end the mail, ErrUnreachable delays all mails, and after
// any other error the mail is tried again later. Several goroutines call deliver; its context ends
// after 90 s, or Grace after ctx.
func (o *Outbox) Run(
	ctx context.Context, deliver func(ctx context.Context, content []byte) error,
) error {
	consumers, err := o.createConsumers(ctx)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	// Deliveries outlive ctx by Grace.
	deliveries, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(Grace, cut) })()

	r := &runner{
		Outbox: o, consumers: consumers, deliver: deliver,
		server:   serverPause{first: o.cfg.FirstServerPause, longest: o.cfg.MaxServerPause},
		inFlight: inFlight{mails: map[uint64]state{}}, ordinary: newQueue(), alarms: newQueue(),
	}
	var group errgroup.Group
	for range deliverers {
		group.Go(func() error {
			return r.pull(ctx, urgent, func(msg jetstream.Msg) error {
				r.handle(deliveries, msg)
				return nil
			})
		})
		group.Go(func() error { return r.deliverQueued(ctx, deliveries, r.ordinary) })
		group.Go(func() error { return r.deliverQueued(ctx, deliveries, r.alarms) })
	}
	for _, c := range []class{ordinary, alarm} {
		group.Go(func() error {
			return r.pull(ctx, c, func(msg jetstream.Msg) error { return r.enqueue(ctx, msg) })
		})
	}
	group.Go(func() error { return r.keepQueued(ctx, r.ordinary) })
	group.Go(func() error { return r.keepQueued(ctx, r.alarms) })
	group.Go(func() error { return r.countWaiting(ctx) })
	return group.Wait()
}

// createConsumers creates or updates the consumers of all classes. It tries until the broker has
// leaders for them.
func (o *Outbox) createConsumers(ctx context.Context) (map[string]jetstream.Consumer, error) {
	consumers := map[string]jetstream.Consumer{}
	for {
		err := jsapi.SetUp(ctx, func(ctx context.Context) (err error) {
			for _, c := range []class{ordinary, alarm, urgent} {
				consumers[c.consumer], err = o.js.CreateOrUpdateConsumer(ctx, Stream, c.config())
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil || ctx.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) {
			return consumers, err
		}
		o.cfg.Logger.Warn("outbox not opened", "error", err)
		streams.Sleep(ctx, startPause)
	}
}

// runner is one Run.
type runner struct {
	*Outbox
	consumers map[string]jetstream.Consumer
	deliver   func(ctx context.Context, content []byte) error
	server    serverPause
	inFlight  inFlight
	// ordinary and alarms are the memory queues of the classes with senders.
	ordinary, alarms *queue
}

// queueOf returns the memory queue of a mail. Urgent mails are in none.
func (r *runner) queueOf(msg jetstream.Msg) *queue {
	if strings.HasPrefix(msg.Subject(), alarmPrefix) {
		return r.alarms
	}
	return r.ordinary
}

// pull requests one mail of a class after the other and passes it to a function.
func (r *runner) pull(ctx context.Context, c class, pass func(jetstream.Msg) error) error {
	for {
		if err := r.server.wait(ctx); err != nil {
			return err
		}
		msg, err := r.next(ctx, c)
		switch {
		case ctx.Err() != nil:
			if msg != nil {
				r.release(msg, 0)
			}
			return ctx.Err()
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("outbox: %w", err)
		case err != nil:
			r.cfg.Logger.Warn("outbox not read", "error", err)
			if err := r.recreateConsumer(ctx, c); err != nil {
				return err
			}
		case msg != nil:
			if err := pass(msg); err != nil {
				return err
			}
		}
	}
}

// next returns the next mail of a class; nil when there is none within nextTimeout.
func (r *runner) next(ctx context.Context, c class) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, nextTimeout)
	defer cancel()
	msg, err := r.consumers[c.consumer].Next(
		jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(nextHeartbeat),
	)
	if errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	return msg, err
}

// recreateConsumer waits nextPause and creates the consumer if it is missing.
func (r *runner) recreateConsumer(ctx context.Context, c class) error {
	if !streams.Sleep(ctx, nextPause) {
		return ctx.Err()
	}
	if _, err := r.js.CreateOrUpdateConsumer(ctx, Stream, c.config()); err != nil &&
		ctx.Err() == nil {
		r.cfg.Logger.Warn("outbox consumer not created", "error", err)
	}
	return ctx.Err()
}

// countWaiting keeps the gauge of waiting mails. In a cluster a server that knows no leader may
// answer with an older number; the next count corrects it.
func (r *runner) countWaiting(ctx context.Context) error {
	for {
		if stream, err := r.js.Stream(ctx, Stream); err == nil {
			r.metrics.waiting.Set(float64(stream.CachedInfo().State.Msgs))
		}
		if !streams.Sleep(ctx, countInterval) {
			return ctx.Err()
		}
	}
}
