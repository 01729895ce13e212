"""The sentences of the sample clinic: why they come, what the vets write, what stays inside."""

from typing import NamedTuple


class Case(NamedTuple):
    """What a visit of one kind may leave on paper."""

    summary: str
    diagnosis: str
    advice: str


REASONS = {  # by kind of appointment, as the desk types them
    1: (
        "Boiterie",
        "vomissements depuis hier",
        "Perd ses poils",
        "Grattage +++",
        "ne mange plus",
        "Toux",
    ),
    2: ("Rappel annuel", "Primo-vaccination", "vaccin rage", "Rappel CHPPiL"),
    3: ("Stérilisation", "Castration", "Exérèse masse flanc gauche", "LCC genou droit"),
    4: (
        "URGENT accident voie publique",
        "Difficulté à respirer",
        "Ingestion chocolat",
        "Convulsions",
    ),
    5: ("Contrôle plaie", "Retrait des points", "Contrôle poids", "contrôle oreilles"),
    6: ("Détartrage", "Mauvaise haleine, tartre"),
    7: ("Écho abdominale", "Écho cardiaque", "Suivi de gestation"),
    8: ("Malpropreté", "Aboie seul", "Peur des orages"),
    9: ("Toilettage complet", "Démêlage"),
}

CASES = {
    1: (
        Case(
            "Boiterie du membre antérieur droit depuis trois jours, appui conservé.",
            "Entorse légère du carpe.",
            "Repos strict pendant dix jours. Sorties en laisse uniquement.",
        ),
        Case(
            "Vomissements répétés depuis la veille, abdomen souple, bon état général.",
            "Gastrite aiguë.",
            "Diète de 24 heures puis aliment digestif. Rappeler si les vomissements reprennent.",
        ),
        Case(
            "Prurit marqué, dépilations du dos et de la base de la queue.",
            "Dermatite par allergie aux piqûres de puces.",
            "Traiter tous les animaux du foyer. Laver les couchages à 60 °C.",
        ),
        Case(
            "Oreilles sales et rouges, tête penchée à gauche.",
            "Otite externe bilatérale.",
            "Nettoyer les oreilles tous les deux jours. Revenir au contrôle dans une semaine.",
        ),
        Case(
            "Baisse d'appétit, soif augmentée, perte de poids depuis deux mois.",
            "Suspicion d'insuffisance rénale chronique.",
            "Laisser de l'eau fraîche à volonté. Une prise de sang à jeun est à prévoir.",
        ),
    ),
    2: (
        Case(
            "Examen général normal, vaccination réalisée.",
            "Bonne santé.",
            "Un peu de fatigue est possible ce soir. Prochain rappel dans un an.",
        ),
        Case(
            "Premier vaccin, auscultation et croissance normales.",
            "Jeune animal en bonne santé.",
            "Deuxième injection dans quatre semaines. Éviter les contacts d'ici là.",
        ),
    ),
    3: (
        Case(
            "Intervention de convenance sous anesthésie générale, sans complication.",
            "Stérilisation.",
            "Garder la collerette dix jours. Surveiller la plaie matin et soir.",
        ),
        Case(
            "Exérèse d'une masse cutanée de deux centimètres, marges larges.",
            "Masse cutanée, analyse en attente.",
            "Donner l'anti-inflammatoire pendant cinq jours. Le résultat sera donné par téléphone.",
        ),
    ),
    4: (
        Case(
            "Abattement, muqueuses pâles, perfusion posée dès l'arrivée.",
            "Choc hypovolémique.",
            "Hospitalisation proposée. Rappeler la clinique demain matin pour des nouvelles.",
        ),
        Case(
            "Ingestion de chocolat une heure avant l'arrivée, vomissement provoqué.",
            "Intoxication au chocolat.",
            "Surveiller l'excitation et le rythme cardiaque pendant 24 heures.",
        ),
    ),
    5: (
        Case(
            "Plaie propre et sèche, points retirés.",
            "Cicatrisation satisfaisante.",
            "La collerette peut être retirée. Reprise normale des sorties.",
        ),
        Case(
            "Amélioration nette, encore un peu d'inflammation.",
            "Évolution favorable.",
            "Poursuivre le traitement jusqu'au bout. Contrôle seulement si besoin.",
        ),
    ),
    6: (
        Case(
            "Détartrage et polissage sous anesthésie, deux dents extraites.",
            "Maladie parodontale de grade 2.",
            "Alimentation molle pendant trois jours. Brosser les dents deux fois par semaine.",
        ),
    ),
    7: (
        Case(
            "Échographie abdominale complète, organes de taille normale.",
            "Pas d'anomalie visible.",
            "Aucun traitement. Contrôle dans six mois.",
        ),
        Case(
            "Épaississement de la paroi vésicale, sédiment mobile.",
            "Cystite avec sédiment.",
            "Encourager la boisson. Donner exclusivement l'aliment urinaire prescrit.",
        ),
    ),
    8: (
        Case(
            "Entretien d'une heure sur l'environnement et les habitudes.",
            "Anxiété de séparation.",
            "Ritualiser les départs. Occuper l'animal avec un jouet à remplir.",
        ),
    ),
}

INTERNAL_NOTES = (
    "INTERNE: propriétaire inquiet, prévoir du temps.",
    "INTERNE: règle toujours en retard, demander un acompte.",
    "INTERNE: prudence, a déjà mordu une ASV.",
    "INTERNE: relancer pour le bilan sanguin.",
    "INTERNE: désaccord dans le couple sur les soins.",
    "INTERNE: remise accordée par la direction.",
    "INTERNE: à revoir en réunion d'équipe.",
)
