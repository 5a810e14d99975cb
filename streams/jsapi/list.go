package jsapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

type listResponse struct {
	response
	Total   int                    `json:"total"`
	Limit   int                    `json:"limit"`
	Streams []jetstream.StreamInfo `json:"streams"`
	// Missing names the streams for which no server answered.
	Missing []string `json:"missing"`
}

// List calls page with the account's streams, in the order of their names, page by page, until page
// returns false or there are no more. A stream that is made or deleted meanwhile may be left out or
// come twice. The information may be a follower's: callers that decide something by it must call
// CheckLeader. missing names the streams for which no server answered.
//
// nats.go's lister does not report missing streams.
func (a API) List(
	ctx context.Context, page func([]jetstream.StreamInfo) (more bool),
) (missing []string, err error) {
	for offset := 0; ; {
		question := map[string]int{"offset": offset}
		answer, err := request[listResponse](ctx, a, "STREAM.LIST", question, nil)
		if err != nil {
			return missing, fmt.Errorf("list streams: %w", err)
		}
		missing = append(missing, answer.Missing...)
		offset += max(answer.Limit, len(answer.Streams), 1)
		if !page(answer.Streams) || offset >= answer.Total {
			return missing, nil
		}
	}
}

// Names returns the names of the account's streams, sorted. One that is made or deleted meanwhile
// may be left out.
func (a API) Names(ctx context.Context) (names []string, err error) {
	js, err := jetstream.NewWithAPIPrefix(a.nc, a.prefix)
	if err != nil {
		return nil, err
	}
	err = a.retry.Do(ctx, func(ctx context.Context) error {
		names = names[:0]
		lister := js.StreamNames(ctx)
		for name := range lister.Name() {
			names = append(names, strings.Clone(name))
		}
		return lister.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	// If a stream is created between two pages, one of the streams after it is listed twice.
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Delete deletes a stream, if it exists.
func (a API) Delete(ctx context.Context, stream string) error {
	_, err := request[response](ctx, a, "STREAM.DELETE."+stream, nil, nil)
	if err != nil && !errors.Is(err, ErrNoStream) {
		return fmt.Errorf("delete stream %s: %w", stream, err)
	}
	return nil
}
