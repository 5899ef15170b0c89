# Compares two dumps line by line: the first is Go's, which may have "*" for a processor that is none. Both sorted by time
# and offset. Exit status 1 and the first lines where they differ.
function normal(line, p, parts, n, i, out)
{
	n = split(line, parts, " ")
	if (p == "*")
		parts[3] = "*"
	if (parts[2] == "STWStart")
		parts[7] = "-"
	out = parts[1]
	for (i = 2; i <= n; i++)
		out = out " " parts[i]
	return out
}
{
	if ((getline other < second) <= 0)
		other = "(nothing)"
	split($0, mine, " ")
	a = normal($0, mine[3])
	b = normal(other, mine[3])
	if (a != b) {
		if (differences++ < 5)
			print "Go    " a "\nsonde " b
	}
}
END {
	while ((getline other < second) > 0)
		if (differences++ < 5)
			print "sonde has more: " other
	if (differences)
		print differences " lines differ"
	exit differences > 0
}
