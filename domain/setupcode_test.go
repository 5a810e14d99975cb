package domain_test

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

// TestCleanSetupCode: the text of a DSK's QR code, a code of two lines and a long QR text did not
// reach hubs, or reached them as no hub reads them.
func TestCleanSetupCode(t *testing.T) {
	t.Parallel()
	const dsk = "34028-23669-20938-46346-33746-07431-56821-14553"
	long := "90" + strings.Repeat("1", domain.MaxSetupCode-2)
	for given, want := range map[string]string{
		"34028": "34028", " 3402 8\n": "34028",
		dsk: dsk, "zws2dsk:" + dsk: dsk, "ZWS2DSK:" + strings.ReplaceAll(dsk, "-", ""): dsk,
		strings.ReplaceAll(dsk, "-", "\u2011"):            dsk,
		strings.Replace(dsk, "-46346", "\r\n 46346", 1):   dsk,
		"\ufeff" + strings.ReplaceAll(dsk, "-", "\u200b"): dsk,
		long: long, long[:30] + "\n" + long[30:]: long,
		// Codes of other radios.
		"MT:Y.K9042C00KA0648G00": "MT:Y.K9042C00KA0648G00", "3497-011-2332": "34970112332",
		"83FE D340 7A93 9723 A5C6 39B2 6916 D505 C3B5": "83FE D340 7A93 9723 A5C6 39B2 6916 D505 C3B5",
		"DPP:C:81/1;M:5254005828e5;V:2;K:MDkwEwYH;;":   "DPP:C:81/1;M:5254005828e5;V:2;K:MDkwEwYH;;",
		// No codes.
		"": "", "3402": "", "340282": "", "zws2dsk:34028": "", dsk[:46]: "", dsk + "1": "",
		long + "1": "", "hello": "", "MT:\x1b[31mY.K90": "", "Haustür-Code": "", "\u3164\u3164": "",
		"\xff34028": "", strings.Repeat("1", 1_000): "",
	} {
		got, err := domain.CleanSetupCode("setup_code", given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("CleanSetupCode(%q): got %q, %v, want %q", given, got, err, want)
		}
		if err != nil && (domain.CodeOf(err) != domain.CodeInvalidRequest ||
			!strings.Contains(err.Error(), "setup_code: must")) {
			t.Errorf("CleanSetupCode(%q): got error %v, want invalid_request", given, err)
		}
		if again, err := domain.CleanSetupCode("setup_code", got); want != "" && again != got {
			t.Errorf("CleanSetupCode(%q): got %q, %v at the second time", got, again, err)
		}
	}
}
