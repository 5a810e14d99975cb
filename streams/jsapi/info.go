package jsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// LeaderActive is how recently a majority of its group must have answered a leader for its answers
// to count: followers answer heartbeats once a second. A deposed leader that is cut off from the
// others acts as the leader for up to 20 s, without the messages that its successor stores.
const LeaderActive = 3 * time.Second

const (
	// confirmFor is how long one leader must repeat an answer that contradicts an earlier one. By
	// then a deposed leader knows of its successor, or its last answer from a majority is older
	// than LeaderActive.
	confirmFor = LeaderActive + time.Second
	// confirmPause is the pause between two of these requests.
	confirmPause = 250 * time.Millisecond
)

type infoResponse struct {
	response
	jetstream.StreamInfo
	// Total is how many subjects match the filter.
	Total int `json:"total"`
}

// CheckLeader returns an ErrNoLeader unless the information is from a leader that a majority has
// answered within LeaderActive. A follower that knows of no leader answers too, from its own state,
// which may be old. The information of a server outside of a cluster is always accepted.
func CheckLeader(info *jetstream.StreamInfo) error {
	group := info.Cluster
	switch {
	case group == nil:
		return nil
	case group.Leader == "":
		return fmt.Errorf("%w: a follower answered", ErrNoLeader)
	}
	answering := 1 // the leader itself
	for _, peer := range group.Replicas {
		if peer.Name == group.Leader { // a leader does not list itself
			return fmt.Errorf("%w: a follower answered", ErrNoLeader)
		}
		if peer.Active > 0 && peer.Active < LeaderActive {
			answering++
		}
	}
	if size := 1 + len(group.Replicas); answering <= size/2 {
		return fmt.Errorf(
			"%w: %d of %d servers answer leader %s", ErrNoLeader, answering, size, group.Leader,
		)
	}
	return nil
}

// Info returns a stream's information from its leader. ErrNoStream means that the stream does not
// exist. In a cluster ErrNoStream comes from the cluster's leader, which may be deposed and cut
// off: callers that know that the stream exists must call ConfirmedInfo.
func (a API) Info(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	return a.info(ctx, stream, "")
}

// SubjectCounts returns the subjects of a stream that match a filter, and how many messages each
// has, from the stream's leader. It is for at most 100,000 subjects.
func (a API) SubjectCounts(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	info, err := a.info(ctx, stream, filter)
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// Deleted returns the sequences between the first and the last of a stream that have no message, in
// their order, from the stream's leader.
func (a API) Deleted(ctx context.Context, stream string) ([]uint64, error) {
	question := map[string]bool{"deleted_details": true}
	answer, err := request(ctx, a, "STREAM.INFO."+stream, question,
		func(answer *infoResponse) error { return CheckLeader(&answer.StreamInfo) },
	)
	if err != nil {
		return nil, fmt.Errorf("deleted messages of stream %s: %w", stream, err)
	}
	return answer.State.Deleted, nil
}

func (a API) info(ctx context.Context, stream, subjects string) (*jetstream.StreamInfo, error) {
	var question any
	if subjects != "" {
		question = map[string]string{"subjects_filter": subjects}
	}
	answer, err := request(ctx, a, "STREAM.INFO."+stream, question,
		func(answer *infoResponse) error { return CheckLeader(&answer.StreamInfo) },
	)
	if err != nil {
		return nil, fmt.Errorf("info of stream %s: %w", stream, err)
	}
	return &answer.StreamInfo, nil
}

// CountSubjects returns how many subjects of a stream match a filter. In a cluster a follower that
// knows of no leader may answer, and its number may be old.
func (a API) CountSubjects(ctx context.Context, stream, filter string) (int, error) {
	question := struct {
		Filter string `json:"subjects_filter"`
		// Offset is behind all subjects: only their number is wanted.
		Offset int `json:"offset"`
	}{filter, 1 << 30}
	answer, err := request[infoResponse](ctx, a, "STREAM.INFO."+stream, question, nil)
	if err != nil {
		return 0, fmt.Errorf("count subjects %s of stream %s: %w", filter, stream, err)
	}
	return answer.Total, nil
}

// ConfirmedInfo is Info for callers that know that the stream had a message with the sequence seen.
// Information that ends before seen is returned only after one leader has repeated it for some
// seconds, or at once from a server outside of a cluster, whose answer cannot be old. A cluster's
// answer that the stream does not exist counts only if seen is 0. The error is ErrUnconfirmed if no
// leader confirms the information within Patience or before ctx ends.
func (a API) ConfirmedInfo(
	ctx context.Context, stream string, seen uint64,
) (*jetstream.StreamInfo, error) {
	return confirm(ctx, stream, seen,
		func(ctx context.Context) (info *jetstream.StreamInfo, missing bool, err error) {
			info, err = a.Info(ctx, stream)
			alone := a.nc.IsConnected() && a.nc.ConnectedClusterName() == ""
			return info, errors.Is(err, ErrNoStream) && seen > 0 && !alone, err
		},
	)
}

// LastRevision returns the last revision of a bucket. As in ConfirmedInfo, the leader must confirm
// a revision before seen.
func LastRevision(ctx context.Context, kv jetstream.KeyValue, seen uint64) (uint64, error) {
	info, err := confirm(ctx, kv.Bucket(), seen,
		func(ctx context.Context) (*jetstream.StreamInfo, bool, error) {
			var info *jetstream.StreamInfo
			err := Retry{}.Do(ctx, func(ctx context.Context) error {
				status, err := kv.Status(ctx)
				if err != nil {
					return err
				}
				known, ok := status.(*jetstream.KeyValueBucketStatus)
				if !ok {
					return fmt.Errorf("bucket %s: its status is a %T", kv.Bucket(), status)
				}
				info = known.StreamInfo()
				return CheckLeader(info)
			})
			return info, false, err
		},
	)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// confirm calls ask until the information reaches seen or is confirmed. missing reports that a
// server answered that the stream does not exist, which does not count.
func confirm(
	ctx context.Context, name string, seen uint64,
	ask func(context.Context) (info *jetstream.StreamInfo, missing bool, err error),
) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var leader string
	var since time.Time
	for {
		info, missing, err := ask(ctx)
		switch {
		case missing:
			since = time.Time{}
		case err != nil || info.State.LastSeq >= seen || info.Cluster == nil:
			return info, err
		case since.IsZero() || info.Cluster.Leader != leader:
			leader, since = info.Cluster.Leader, time.Now()
		case time.Since(since) >= confirmFor:
			return info, nil
		}
		select {
		case <-ctx.Done():
			if missing {
				return nil, fmt.Errorf(
					"%w: %s had sequence %d, and now does not exist", ErrUnconfirmed, name, seen,
				)
			}
			return nil, fmt.Errorf(
				"%w: %s had sequence %d and ends at %d", ErrUnconfirmed, name, seen,
				info.State.LastSeq,
			)
		case <-time.After(confirmPause):
		}
	}
}
