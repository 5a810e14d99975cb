package directory

import (
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams"
)

// unread returns a fault that passes and kept the directory from being read as a
// domain.Unavailable. Any other error stays what it is.
func unread(err error) error {
	if !passing(err) {
		return err
	}
	return fmt.Errorf(
		"%w: %w",
		domain.Unavailable("the directory cannot be read at the moment; nothing was changed"), err,
	)
}

// unwritten is unread for an append that failed. ErrConflict comes here when others were faster for
// as long as an update tries.
func unwritten(err error) error {
	var told *domain.Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, streams.ErrUnsure):
		return fmt.Errorf("%w: %w", domain.Unavailable(
			"the directory did not confirm the change: it may be stored, now or in a moment; "+
				"look whether it is before the request is repeated",
		), err)
	case errors.Is(err, ErrConflict):
		return fmt.Errorf(
			"%w: %w",
			domain.Unavailable("others change the same at this moment; nothing was changed"), err,
		)
	case passing(err):
		return fmt.Errorf(
			"%w: %w",
			domain.Unavailable(
				"the directory cannot be written at the moment; nothing was changed",
			),
			err,
		)
	}
	return err
}

// passing reports whether the same call can succeed later. A *domain.Error has said so itself.
func passing(err error) bool {
	var told *domain.Error
	if err == nil || errors.As(err, &told) {
		return false
	}
	return streams.Passing(err) || errors.Is(err, errBehind) || errors.Is(err, errTorn) ||
		errors.Is(err, errGap) ||
		errors.Is(err, errUnseen)
}
