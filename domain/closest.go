package domain

import (
	"strings"
	"unicode/utf8"
)

// Closest returns the known name that an unknown one means, and "" if it means none: one with the
// same letters, in any case and with any separators, or with one letter wrong, or two in a name of
// five letters or more.
func Closest(name string, known []string) (meant string) {
	const longest = 64 // of a name that is compared
	letters := lettersOf(name)
	if utf8.RuneCountInString(letters) < 2 || len(name) > longest {
		return ""
	}
	nearest := 3
	for _, candidate := range known {
		of, allowed := lettersOf(candidate), 1
		if len(of) >= 5 {
			allowed = 2
		}
		if d := editDistance(letters, of); d <= allowed && d < nearest {
			meant, nearest = candidate, d
		}
	}
	return meant
}

// lettersOf returns a name in lower case without separators.
func lettersOf(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "", "[", "", "]", "").
		Replace(strings.ToLower(name))
}

// editDistance returns how many letters of a must be replaced, added, removed or swapped with their
// neighbor to get b.
func editDistance(a, b string) int {
	from, to := []rune(a), []rune(b)
	// rows holds the distances from the beginnings of from to the beginnings of to.
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			replaced := rows[i-1][j-1]
			if from[i-1] != to[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
