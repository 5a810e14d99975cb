package domain

import (
	"regexp"
	"strings"
	"unicode"
)

// MaxSetupCode is the most characters of a setup code. The longest known, a QR text of Wi-Fi Easy
// Connect, has about 200.
const MaxSetupCode = 1_000

var (
	// setupDigits matches codes of digits only: a PIN (5 digits), a DSK (40), a QR text of Z-Wave,
	// and the codes of other radios, such as the numeric ones of Matter (11 or 21).
	setupDigits = regexp.MustCompile(`^(\d{5}|\d{8,36}|\d{40}|90\d{50,})$`)
	// setupText matches other codes, such as a QR text of Matter and an install code of Zigbee.
	setupText = regexp.MustCompile(`^[!-~]([ -~]{5,}[!-~])$`)
)

// CleanSetupCode returns the setup code that is printed on a device as hubs get it: in one line, a
// DSK as eight groups of five digits with dashes, and other codes of digits without anything
// between them. It accepts the prefix zws2dsk: of a DSK's QR code. It returns an invalid_request
// that names the field for a text that is the code of no known radio. Only the hub can judge which
// code its radio needs.
func CleanSetupCode(field, s string) (string, error) {
	code := strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t', r == '\u2028', r == '\u2029', invisible(r):
			return -1
		case unicode.Is(unicode.Zs, r):
			return ' '
		case isDash(r):
			return '-'
		}
		return r
	}, s))
	const dskPrefix = "zws2dsk:"
	isDSK := len(code) >= len(dskPrefix) && strings.EqualFold(code[:len(dskPrefix)], dskPrefix)
	if isDSK {
		code = code[len(dskPrefix):]
	}
	digits := strings.NewReplacer("-", "", " ", "").Replace(code)
	switch {
	case len(s) > 4*MaxSetupCode || len(code) > MaxSetupCode:
		return "", Errorf(
			CodeInvalidRequest, "%s: must be at most %d characters", field, MaxSetupCode,
		)
	case len(digits) == 40 && setupDigits.MatchString(digits):
		groups := make([]string, 8)
		for i := range groups {
			groups[i] = digits[5*i : 5*i+5]
		}
		return strings.Join(groups, "-"), nil
	case !isDSK && setupDigits.MatchString(digits):
		return digits, nil
	case !isDSK && strings.Trim(digits, "0123456789") != "" && setupText.MatchString(code):
		return code, nil
	}
	return "", Errorf(
		CodeInvalidRequest, "%s: must be the PIN (5 digits), the DSK (8 groups of 5 digits) or the "+
			"text of the QR code that is printed on the device", field,
	)
}

// isDash reports whether r looks like a dash: printed codes and Serials are copied from documents
// that have typographic ones.
func isDash(r rune) bool { return r == '\u2212' || unicode.Is(unicode.Pd, r) }
