package directory

import (
	"errors"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// readError returns a temporary failure to read the directory as a domain.Unavailable. It returns
// any other error unchanged.
func readError(err error) error {
	if !temporary(err) {
		return err
	}
	return domain.UnavailableBecause(
		err, "the directory cannot be read at the moment; nothing was changed",
	)
}

// writeError returns a temporary failure of an append as a domain.Unavailable. It returns any other
// error unchanged. The message states whether the change may be stored. ErrConflict
// arrives here only after Update has used up its tries.
func writeError(err error) error {
	var known *domain.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, jsapi.ErrOutcomeUnknown):
		return domain.UnavailableBecause(
			err,
			"the directory did not confirm the change: it may be stored, now or in a moment; "+
				"check before you repeat the request",
		)
	case errors.Is(err, ErrConflict):
		return domain.UnavailableBecause(
			err, "others are changing the same object at the moment; nothing was changed",
		)
	case temporary(err):
		return domain.UnavailableBecause(
			err, "the directory cannot be written at the moment; nothing was changed",
		)
	}
	return err
}

// temporary reports whether the same call can succeed later. It is false for a *domain.Error, which
// clients can be shown unchanged.
func temporary(err error) bool {
	var known *domain.Error
	if err == nil || errors.As(err, &known) {
		return false
	}
	return jsapi.IsTemporary(err) || errors.Is(err, errBehind)
}
